import { expect, test } from "vitest";

import { after, instant, iso, millis, minutes } from "../../src/domain/units.ts";
import { handoverApi, shiftStart } from "../../src/operator/handover.ts";
import { outcomeCount } from "../../src/operator/handoverEvents.ts";
import { timesOfDay } from "../../src/platform/clock.ts";
import { aDepot } from "../support/aDepot.ts";
import { anAlarm } from "../support/anAlarm.ts";
import { aPicture } from "../support/aPicture.ts";

const event = "EV-1" as never;
const row = (kind: string, vehicle: string | null, facts: unknown, command: string | null = null) =>
  ({ kind, vehicle, charger: "bay-09", command, facts }) as never;
const won = (vehicle: string | null, command: string) =>
  row("decision", vehicle, { winner: { event: "EV-1" } }, command);
const outcome = (vehicle: string | null, command: string, progress: string) =>
  row("outcome", vehicle, { progress }, command);

test("the last fact of each vehicle asked for counts, and a release that is followed is no verdict on the event", () => {
  const count = outcomeCount(event, new Set(["veh-1", "veh-2", "veh-3", "veh-4"]));
  const rows = [
    won("veh-1", "1-1"),
    outcome("veh-1", "1-1", "acknowledged"),
    outcome("veh-1", "1-1", "notFollowed"),
    outcome("veh-1", "1-1", "followed"),
    won("veh-2", "1-2"),
    outcome("veh-2", "1-2", "refused"),
    row("decision", "veh-2", { winner: null }, "1-3"),
    outcome("veh-2", "1-3", "followed"),
    won("veh-3", "1-4"),
    outcome("veh-3", "1-4", "followed"),
    row("operator", "veh-3", { effect: true }),
    row("operator", "veh-1", { by: "anna" }),
    row("missed", "veh-4", {}),
    won(null, "1-5"),
    outcome(null, "1-5", "followed"),
    row("missed", "veh-4", {}),
    won("veh-9", "1-6"),
    outcome("veh-9", "1-6", "followed"),
  ];
  count.add(rows.slice(0, 5));
  count.add(rows.slice(5));
  expect(count.outcome()).toEqual({
    followed: ["veh-1"],
    notFollowed: ["veh-2"],
    held: ["veh-3"],
    missed: ["veh-4"],
  });
});

test("a handover has the alarms that last first, the gravest of them first", async () => {
  const critical = anAlarm("notFollowed");
  const now = after(critical.since, minutes(30));
  const warning = {
    ...anAlarm("neverHeard"),
    severity: "warning",
    since: after(critical.since, millis(1000)),
  } as const;
  const cleared = { ...anAlarm("broker"), state: "cleared", clearedAt: now } as const;
  const answer = await handoverApi({
    state: aPicture(),
    store: { audit: async () => [], head: () => ({ seq: 0, hash: "", seal: "" }) },
    site: "depot",
    timeOfDay: timesOfDay("UTC"),
    now: () => now,
    mode: () => ({}),
    alarms: () => [cleared, warning, critical],
    departures: () => ({ ok: true, value: [] }),
    problems: async () => [],
  })({});
  expect(answer).toMatchObject({
    ok: true,
    value: { alarms: ["notFollowed", "neverHeard", "broker"].map((key) => ({ key })) },
  });
});

test.each([
  [undefined, "2026-11-20T18:00:00.000Z"],
  ["22:00", "2026-11-20T21:00:00.000Z"],
  ["05:30", "2026-11-21T04:30:00.000Z"],
  ["8h", "2026-11-20T22:00:00.000Z"],
  ["2026-11-21T01:00:00+01:00", "2026-11-21T00:00:00.000Z"],
])("a shift since %s begins at %s", (given, since) => {
  const now = instant(Date.parse("2026-11-21T06:00:00Z"));
  const start = shiftStart(given, timesOfDay("Europe/Oslo"), now);
  expect("since" in start ? iso(start.since) : start).toBe(since);
});

test.each(["25h", "soon", "25:00", "2026-11-21T07:00:00Z", 5])(
  "since %s is refused with its forms",
  (given) => {
    const now = instant(Date.parse("2026-11-21T06:00:00Z"));
    expect(shiftStart(given, timesOfDay("UTC"), now)).toMatchObject({
      problem: { status: 400, errors: [{ path: "since", expected: expect.stringContaining("8h") }] },
    });
  },
);

const HOLD_ENDS = "the override of anna on bay-03 ends";

test("a handover has the shift: results of events, holds and their ends, the mode, and what is due next", async () => {
  const depot = await aDepot()
    .withVehicles(3)
    .withEvent({ id: "EV-1", start: "01:00", minutes: 60, amperes: 10, vehicles: ["v1", "v2"] })
    .withEvent({ id: "EV-2", start: "03:30", minutes: 120, amperes: 16, vehicles: ["v1", "v2", "v3"] })
    .withEvent({ id: "EV-3", start: "08:00", minutes: 60, amperes: 16, vehicles: ["v3"] })
    .running();
  await depot.until("01:10");
  await depot.hold({
    scope: { vehicle: "v2" },
    kind: "exempt",
    until: { at: "2026-11-21T02:30:00Z" },
    reason: "leaves early",
  });
  await depot.until("03:40");
  await depot.mode({ mode: "observe", reason: "work on the panel", until: "2026-11-21T03:45:00Z" });
  await depot.until("04:00");
  const open = await depot.hold({
    scope: { charger: "bay-03" },
    kind: "level",
    level: { currentA: 8 },
    until: { at: "2026-11-21T05:00:00Z" },
    reason: "leaves early",
  });
  const { id } = (open as unknown as { value: { id: string } }).value;
  expect(await depot.handover({ since: "4h" })).toMatchObject({
    value: {
      since: expect.stringContaining("2026-11-21T00:00:00"),
      mode: {
        mode: "drive",
        changes: [{ message: expect.stringContaining("anna: work on the panel") }, {}],
      },
      events: [
        { id: "EV-2", state: "active", vehicles: 3, asked: "16 A" },
        { id: "EV-1", state: "ended", vehicles: 2, held: { count: 1, vehicles: ["v2"] } },
      ],
      holds: [{ id, state: "open", by: "anna" }, { state: "ended" }],
      due: [
        { at: "2026-11-21T05:00:00.000Z", kind: "holdEnds", subject: id, message: HOLD_ENDS },
        { at: "2026-11-21T05:30:00.000Z", kind: "eventEnds", subject: "EV-2" },
        { at: "2026-11-21T08:00:00.000Z", kind: "eventStarts", subject: "EV-3" },
        { at: "2026-11-21T09:00:00.000Z", kind: "eventEnds", subject: "EV-3" },
      ],
      sentence:
        "mode drive; 2 events, 1 active; 2 overrides, 1 open; 0 alarms, 0 open; 0 vehicles leaving short; 0 unreachable",
    },
  });
});
