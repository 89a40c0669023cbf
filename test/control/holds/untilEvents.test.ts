import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";

const LEVEL = { kind: "level", level: { currentA: 8 }, reason: "leaves early" } as const;
const EXEMPT = { kind: "exempt", reason: "leaves early" } as const;
const bay = { scope: { charger: "bay-01" } } as const;

test("a level until the events in force ends with them, also where they are extended or withdrawn", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 16, vehicles: ["v1"] })
    .withEvent({ id: "EV-2", start: "00:00", minutes: 60, amperes: 16, vehicles: ["v2"] })
    .running();
  const events = { until: { events: true } };
  await depot.hold({ ...bay, ...LEVEL, ...events });
  await depot.hold({ scope: { vehicle: "v2" }, ...LEVEL, ...events });
  await depot.deliver({
    id: "EV-1",
    start: "00:00",
    minutes: 90,
    amperes: 16,
    vehicles: ["v1"],
    revision: 1,
  });
  await depot.until("00:30");
  await depot.withdraw("EV-2");
  await depot.until("01:15");
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{ scope: { charger: "bay-01" } }] });
  await depot.until("02:00");
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
  expect(depot.timedCommands().filter((command) => command.endsWith("release"))).toEqual([
    expect.stringMatching(/^00:30:00.\d+ bay-02 release$/),
    "01:30:00.000 bay-01 release",
  ]);
});

test.each([
  ["exemption", EXEMPT],
  ["level", LEVEL],
] as const)("holds of a vehicle that is at no charger ends with its withdrawn event", async (_, kind) => {
  const depot = await aDepot()
    .withVehicles(1)
    .withVehicle("v2", null)
    .withEvent({ id: "EV-1", start: "00:00", minutes: 300, amperes: 16, vehicles: ["v1", "v2"] })
    .running();
  await depot.hold({ scope: { vehicle: "v2" }, ...kind, until: { events: true } });
  await depot.until("00:30");
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{ scope: { vehicle: "v2" } }] });
  await depot.withdraw("EV-1");
  await depot.until("00:42");
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
  expect(depot.audit("operator").at(-1)).toMatch(/ended after \d+ min: its events are over$/);
});

test("a hold of a vehicle that is at no charger ends earlier when its event is cut short, and no later than that after a restart", async () => {
  const event = { id: "EV-1", start: "00:00", amperes: 16, vehicles: ["v2"] };
  const depot = await aDepot()
    .withVehicle("v2", null)
    .withEvent({ ...event, minutes: 300 })
    .running();
  await depot.hold({ scope: { vehicle: "v2" }, ...EXEMPT, until: { events: true } });
  await depot.deliver({ ...event, minutes: 60, revision: 1 });
  await depot.until("00:10");
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{ until: "2026-11-21T01:00:00.000Z" }] });
  await depot.restart();
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{ until: "2026-11-21T01:00:00.000Z" }] });
  await depot.until("01:01");
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
});

test("a hold of a vehicle that is at no charger, whose end cannot be stored, is tried again every few seconds", async () => {
  const depot = await aDepot()
    .withVehicle("v2", null)
    .withEvent({ id: "EV-1", start: "00:00", minutes: 300, amperes: 16, vehicles: ["v2"] })
    .running();
  await depot.hold({ scope: { vehicle: "v2" }, ...EXEMPT, until: { events: true } });
  await depot.withdraw("EV-1");
  await depot.until("00:09");
  depot.disk.full = true;
  await depot.until("00:12");
  const looks = depot.looks;
  await depot.passes(60_000);
  expect(depot.looks - looks).toBeLessThan(100);
  depot.disk.full = false;
  await depot.passes(10_000);
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
});

test("a level over the site whose event is extended goes on without a gap at every charger", async () => {
  const event = { id: "EV-1", start: "00:00", amperes: 16, vehicles: ["v1"] };
  const depot = await aDepot()
    .withVehicles(2)
    .withEvent({ ...event, minutes: 60 })
    .running();
  await depot.until("00:10:30");
  await depot.hold({ scope: { site: true }, ...LEVEL, until: { events: true } });
  await depot.deliver({ ...event, minutes: 90, revision: 1 });
  await depot.until("00:59:59");
  depot.forget();
  await depot.until("01:00:01");
  expect(depot.timedCommands().toSorted()).toEqual(["01:00:00.000 bay-01 8 A", "01:00:00.000 bay-02 8 A"]);
});
