import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

const plan = (answer: unknown) =>
  (answer as { readonly value: { readonly rows: readonly Record<string, unknown>[] } }).value;

test("before an event starts, each of its vehicles shows what it will get, and what will keep it from that", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", "bay-02")
    .withVehicle("v3", "bay-03")
    .withVehicle("v4", null)
    .withEvent({
      id: "EV-1",
      start: "01:00",
      minutes: 60,
      amperes: 40,
      priority: 5,
      vehicles: ["v1", "v2", "v3", "v4"],
    })
    .withEvent({ id: "EV-2", start: "00:30", minutes: 120, amperes: 8, priority: 1, vehicles: ["v2"] })
    .withEvent({ id: "EV-3", start: "01:20", minutes: 10, amperes: 6, priority: 1, vehicles: ["v3"] })
    .running();
  await depot.hold({
    scope: { vehicle: "v3" },
    kind: "level",
    level: { currentA: 20 },
    until: { at: "2026-11-21T01:10:00Z" },
    reason: "leaves early",
  });
  const { rows, ...whole } = plan(depot.eventPlan("EV-1"));
  expect(whole).toMatchObject({ event: "EV-1", vehicles: 4, mode: "drive" });
  const of = (vehicle: string) => rows.find((row) => row["vehicle"] === vehicle);
  expect(of("v1")).toMatchObject({
    charger: "bay-01",
    from: "2026-11-21T01:00:00.000Z",
    asked: { currentA: 40 },
    outcome: "limited",
    gets: { currentA: 32 },
    winner: "EV-1",
    limits: ["charger maximum"],
    interrupted: [],
  });
  expect(of("v2")).toMatchObject({ outcome: "overruled", gets: { currentA: 8 }, winner: "EV-2" });
  // The hold ends before EV-3 begins.
  expect(of("v3")).toMatchObject({
    outcome: "held",
    gets: { currentA: 20 },
    winner: null,
    hold: expect.any(String),
    interrupted: [{ event: "EV-3" }],
  });
  expect(of("v4")).toMatchObject({ charger: null, outcome: "absent", gets: null });
});

test("an event that takes over in the middle is named with its time, and one that has begun is planned from now", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "01:00", minutes: 60, amperes: 10, priority: 5 })
    .withEvent({ id: "EV-2", start: "01:20", minutes: 10, amperes: 6, priority: 1 })
    .withEvent({ id: "EV-3", start: "01:40", minutes: 10, amperes: 6, priority: 9 })
    .running();
  const interrupted = [
    { event: "EV-2", from: "2026-11-21T01:20:00.000Z", until: "2026-11-21T01:30:00.000Z" },
  ];
  expect(plan(depot.eventPlan("EV-1")).rows).toMatchObject([{ outcome: "asked", interrupted }]);
  await depot.until("01:25");
  expect(plan(depot.eventPlan("EV-1")).rows).toMatchObject([
    { outcome: "overruled", winner: "EV-2", gets: { currentA: 6 }, interrupted: [] },
  ]);
  await depot.until("02:30");
  expect(plan(depot.eventPlan("EV-1")).rows).toEqual([]);
  expect(depot.eventPlan("EV-9")).toMatchObject({
    ok: false,
    problem: { status: 404, detail: "GET /api/v1/events lists those that are known" },
  });
});

test("a dry run shows what an event of the record would do now: its levels and random starts, among what holds now", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", "bay-02")
    .withEvent({
      id: "EV-1",
      start: "01:00",
      minutes: 60,
      amperes: 40,
      priority: 5,
      spread: 10,
      vehicles: ["v1", "v2"],
    })
    .running();
  const planned = plan(depot.eventPlan("EV-1")).rows;
  await depot.until("03:00");
  expect(plan(depot.eventPlan("EV-1")).rows).toEqual([]);
  await depot.deliver({
    id: "EV-2",
    start: "03:00",
    minutes: 120,
    amperes: 8,
    priority: 1,
    vehicles: ["v2"],
  });
  depot.forget();
  const { rows, vehicles } = plan(await depot.dryRun("EV-1")) as ReturnType<typeof plan> & {
    readonly vehicles: number;
  };
  const of = (vehicle: string) => rows.find((row) => row["vehicle"] === vehicle);
  expect(vehicles).toBe(2);
  expect(of("v1")).toMatchObject({ outcome: "limited", gets: { currentA: 32 }, winner: "EV-1" });
  expect(of("v2")).toMatchObject({ outcome: "overruled", gets: { currentA: 8 }, winner: "EV-2" });
  expect(planned.every(({ offsetMs }) => Number(offsetMs) > 0)).toBe(true);
  for (const { vehicle, offsetMs, from } of planned) {
    expect(of(String(vehicle))?.["offsetMs"]).toBe(offsetMs);
    expect(Date.parse(String(of(String(vehicle))?.["from"]))).toBeGreaterThan(Date.parse(String(from)));
  }
  // It only shows: nothing was sent, and the plan is as before.
  await depot.until("03:30");
  expect([depot.commands(), plan(depot.eventPlan("EV-1")).rows]).toEqual([[], []]);
  await depot.withdraw("EV-1", 9);
  expect(await depot.dryRun("EV-1")).toMatchObject({ ok: false, problem: { status: 409 } });
  expect(await depot.dryRun("EV-9")).toMatchObject({ ok: false, problem: { status: 404 } });
});
