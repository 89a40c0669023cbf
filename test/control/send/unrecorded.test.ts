import { expect, test } from "vitest";

import { evaluate } from "../../../src/control/decide/evaluate.ts";
import { UnrecordedReleases } from "../../../src/control/send/unrecorded.ts";
import { amperes, chargerId, millis } from "../../../src/domain/units.ts";
import { aVehicle } from "../../support/aCharger.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";
import { aLevelHold } from "../../support/aHold.ts";
import { aPicture, rememberedOf } from "../../support/aPicture.ts";
import { aDepot } from "../../support/aDepot.ts";
import type { TestDepot } from "../../support/testDepot.ts";

test("a release that replaced another one stays until it is stored itself", async () => {
  const depot = aPicture();
  const bay = chargerId("bay-01");
  depot.allowStarts();
  depot.schedule.put(live(anEvent({ randomizeStart: millis(0) })), at("05:10"));
  const storing: (() => void)[] = [];
  const releases = new UnrecordedReleases(() => {
    const { promise, resolve } = Promise.withResolvers<void>();
    storing.push(resolve);
    return promise;
  });
  const scope = { events: new Set<never>(), chargers: new Set([bay]), holds: new Set<string>(), mode: false };
  const persons = () =>
    releases.over(scope, rememberedOf({})).holds.flatMap(({ by, ended }) => (ended === null ? [by] : []));
  releases.free(depot, [bay], "anna", at("05:10"));
  depot.schedule.put(live(anEvent({ id: "EV-2", randomizeStart: millis(0) })), at("05:11"));
  releases.free(depot, [bay], "ben", at("05:11"));
  expect(persons()).toEqual(["ben"]);
  storing[0]?.();
  await Promise.resolve();
  expect(persons()).toEqual(["ben"]);
  storing[1]?.();
  await Promise.resolve();
  expect(persons()).toEqual([]);
});

test("a hold that an unstored release ended stays over after a second release of its charger", () => {
  const depot = aPicture();
  const bay = chargerId("bay-01");
  depot.allowStarts();
  depot.holds.put(aLevelHold({ id: "hold-6-1" }));
  const releases = new UnrecordedReleases(() => new Promise(() => {}));
  releases.free(depot, [bay], "anna", at("05:10"));
  depot.schedule.put(live(anEvent({ randomizeStart: millis(0) })), at("05:11"));
  releases.free(depot, [bay], "ben", at("05:11"));
  const scope = { events: new Set<never>(), chargers: new Set([bay]), holds: new Set<never>(), mode: false };
  const holds = releases.over(scope, rememberedOf({})).holds.map(({ id, ended }) => [id, ended?.by]);
  expect(holds).toEqual([
    ["hold-6-1", "anna"],
    ["hold-7-1", undefined],
  ]);
});

const paused = () =>
  aDepot().withVehicle("v1", "bay-01").withEvent({ start: "08:00", minutes: 60, amperes: 0 });

const released = (depot: TestDepot): readonly string[] =>
  depot.audit("decision").filter((words) => words.includes("released"));

test("a pause whose event is over is not repeated while the disk is full: the charger is released, and that is recorded later (F05)", async () => {
  const depot = await paused().running();
  await depot.until("08:50");
  depot.disk.full = true;
  await depot.until("08:59:30");
  depot.forget();
  await depot.until("10:00");
  // A release is refreshed three times.
  expect(depot.messages().map((line) => line.slice(13))).toEqual(Array<string>(4).fill("bay-01 release"));
  expect(depot.messages()[0]).toBe("09:00:00.000 bay-01 release");
  expect(released(depot)).toEqual([]);
  depot.disk.full = false;
  depot.forget();
  await depot.until("10:10");
  expect(depot.messages()).toEqual([]);
  expect(released(depot)).toHaveLength(1);
  expect(depot.audit("outcome").filter((words) => words.includes("acknowledged by the broker"))).toHaveLength(
    2,
  );
});

test("a charger without a lease is released at an event's end although the disk refuses (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ start: "08:00", minutes: 60, amperes: 8 })
    .running();
  await depot.until("08:50");
  depot.disk.full = true;
  await depot.until("09:30");
  depot.disk.full = false;
  await depot.until("09:31");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 8 A", "09:00:00.000 bay-01 release"]);
  expect(released(depot)).toHaveLength(1);
});

test("a release that the broker does not acknowledge is tried again while the disk is full (F05)", async () => {
  const depot = await paused().running();
  await depot.until("08:50");
  depot.disk.full = true;
  depot.floor.publishing("bay-01", "fails");
  await depot.until("09:10");
  depot.floor.publishing("bay-01", "works");
  await depot.until("09:12");
  expect(depot.commands().at(-1)).toBe("bay-01 release");
});

test("chargers are released in the order of the release ramp while the disk is full (F05)", async () => {
  const depot = await aDepot()
    .withControl({ releaseRamp: { current: 32 } })
    .withVehicles(3)
    .withEvent({ start: "08:00", minutes: 60, amperes: 0 })
    .running();
  await depot.until("08:50");
  depot.disk.full = true;
  await depot.until("10:00");
  const releases = depot.timedCommands().filter((line) => line.endsWith("release"));
  expect(releases.map((line) => line.slice(0, 5))).toEqual(["09:00", "09:01", "09:02"]);
});

test("an operator's release is published although it could not be stored, holds, and is recorded later (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.disk.full = true;
  expect(await depot.free("bay-01")).toMatchObject({ ok: false });
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  await depot.until("08:20");
  depot.disk.full = false;
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  expect(depot.audit("operator")).toEqual(["bay-01 freed by an operator until 09:00:00"]);
  await depot.restart();
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("an operator's release of a level configured for the end of the event is published although the disk is full (F05)", async () => {
  const depot = await aDepot()
    .withControl({ atEnd: "pause" })
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("09:10");
  depot.disk.full = true;
  await depot.free("bay-01");
  await depot.until("09:20");
  depot.disk.full = false;
  await depot.until("09:21");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 pause", "bay-01 release"]);
  expect(depot.audit("operator")).toEqual(["bay-01 freed by an operator from pause"]);
});

test("an operator's release that cannot be stored waits for a charger that is offline, and reaches it on its return (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.online("bay-01", false);
  depot.disk.full = true;
  await depot.free("bay-01");
  await depot.until("08:20");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  await depot.online("bay-01", true);
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test.each([
  { amperes: 10, atEnd: "pause", sent: "bay-01 pause" },
  { amperes: 0, atEnd: { current: 16 }, sent: "bay-01 16 A" },
])(
  "the level configured for the end ($sent) is not sent before it is stored, and the $amperes A of the event are not repeated (F05)",
  async ({ amperes, atEnd, sent }) => {
    const depot = await aDepot()
      .startingAt("07:59")
      .withControl({ atEnd })
      .withVehicle("v1", "bay-01")
      .withEvent({ start: "08:00", minutes: 60, amperes })
      .running();
    await depot.until("08:59:30");
    depot.forget();
    depot.disk.full = true;
    await depot.until("09:30");
    expect(depot.messages()).toEqual([]);
    depot.disk.full = false;
    await depot.until("09:31");
    expect(depot.commands()).toEqual([sent]);
  },
);

test("the reason of a release that could not be stored is shown while the disk is full (F05)", async () => {
  const depot = await paused().publishingStates().running();
  await depot.until("08:50");
  depot.disk.full = true;
  await depot.until("09:05");
  const shown = JSON.parse(depot.floor.states.at(-1)?.payload ?? "{}");
  expect(shown).toMatchObject({ allowed: { kind: "release" }, reason: { cause: "ended" } });
});

test("a release that could be stored at last does not come back when the disk is full again: the next event keeps its lease (F05)", async () => {
  const depot = await paused().withEvent({ id: "EV-2", start: "10:00", minutes: 60, amperes: 10 }).running();
  await depot.until("08:50");
  depot.disk.full = true;
  await depot.until("09:10");
  depot.disk.full = false;
  await depot.until("10:10:30");
  depot.forget();
  depot.disk.full = true;
  await depot.hold({
    scope: { charger: "bay-01" },
    kind: "level",
    level: { currentA: 8 },
    until: { at: "2026-11-21T10:50:00Z" },
    reason: "less",
  });
  await depot.until("10:20:30");
  expect(new Set(depot.messages().map((line) => line.slice(13)))).toEqual(new Set(["bay-01 10 A"]));
  expect(depot.messages().length).toBeGreaterThanOrEqual(9);
});

test("an operator's release that could not be stored holds although its end cannot be stored either (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.disk.full = true;
  await depot.free("bay-01");
  const [open] = (depot.holds({ state: "open" }) as unknown as { value: { id: string }[] }).value;
  expect(await depot.endHold(open?.id ?? "")).toMatchObject({ problem: { status: 503 } });
  depot.disk.full = false;
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("an operator who releases twice while the disk is full sends one release (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.disk.full = true;
  await depot.free("bay-01");
  await depot.free("bay-01");
  await depot.until("08:20");
  depot.disk.full = false;
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("the level of a hold is not repeated past its end while the event after it cannot be stored (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "07:00", minutes: 180, amperes: 10 })
    .running();
  await depot.until("08:00");
  await depot.hold({
    scope: { charger: "bay-01" },
    kind: "level",
    level: { currentA: 16 },
    until: { at: "2026-11-21T08:20:00Z" },
    reason: "works",
  });
  await depot.until("08:15");
  depot.disk.full = true;
  await depot.until("08:19:59");
  depot.forget();
  await depot.until("08:40");
  expect(depot.messages().filter((line) => line.includes("16 A"))).toEqual([]);
});

const UNDER_HOLD = { scope: { vehicle: "v1" }, kind: "level", level: { currentA: 8 }, reason: "works" };
const CHARGING = { state: "charging", currentsA: [8, 8, 8] } as const;

test.each([
  { end: { unplugged: true }, reached: { state: "unplugged", sessionWh: 0 }, why: "unplugged" },
  { end: { energyWh: 2000 }, reached: { ...CHARGING, sessionWh: 2000 }, why: "the energy is delivered" },
] as const)(
  "the level of a hold is not repeated once it is over, although its end ($why) cannot be stored: the charger is released, and both are recorded later, once (F05)",
  async ({ end, reached, why }) => {
    const depot = await aDepot().startingAt("07:59").withVehicle("v1", "bay-01").running();
    await depot.until("08:00");
    await depot.telemetry("bay-01", { ...CHARGING, sessionWh: 0 });
    await depot.hold({ ...UNDER_HOLD, until: end });
    await depot.until("08:10");
    depot.disk.full = true;
    depot.forget();
    await depot.telemetry("bay-01", reached);
    await depot.until("08:20");
    // A release is refreshed three times.
    expect(depot.messages().map((line) => line.slice(13))).toEqual(Array<string>(4).fill("bay-01 release"));
    expect(depot.messages()[0]).toMatch(/^08:10:00/);
    // The next vehicle finds the hold over.
    await depot.telemetry("bay-01", { ...CHARGING, sessionWh: 0 });
    depot.disk.full = false;
    depot.forget();
    await depot.until("08:30");
    await depot.restart();
    expect(depot.messages()).toEqual([]);
    expect(depot.audit("operator").filter((words) => words.endsWith(`: ${why}`))).toHaveLength(1);
    expect(released(depot)).toHaveLength(1);
  },
);

test.each(["an event", "the hold of the site"])(
  "the pause of a hold is not repeated past its end while %s after it cannot be stored (F05)",
  async (next) => {
    const depot = await aDepot()
      .startingAt("07:59")
      .withVehicle("v1", "bay-01")
      .withEvent({ start: "07:00", minutes: 180, amperes: 10 })
      .running();
    await depot.until("08:00");
    if (next === "the hold of the site")
      await depot.hold({ ...UNDER_HOLD, scope: { site: true }, until: { at: "2026-11-21T10:00:00Z" } });
    await depot.hold({ ...UNDER_HOLD, level: { pause: true }, until: { at: "2026-11-21T08:20:00Z" } });
    await depot.until("08:15");
    depot.disk.full = true;
    depot.forget();
    await depot.until("08:19:30");
    expect(new Set(depot.messages().map((line) => line.slice(13)))).toEqual(new Set(["bay-01 pause"]));
    expect(depot.messages().length).toBeGreaterThanOrEqual(4);
    await depot.until("08:20");
    depot.forget();
    await depot.until("08:40");
    expect(depot.messages()).toEqual([]);
  },
);

test("the level of a hold keeps its lease while the vehicle that came to its charger cannot be stored (F05)", async () => {
  const depot = await aDepot()
    .startingAt("07:59")
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", null)
    .running();
  await depot.until("08:00");
  const until = { at: "2026-11-21T09:00:00Z" };
  await depot.hold({ ...UNDER_HOLD, scope: { charger: "bay-01" }, until });
  await depot.until("08:10:30");
  depot.disk.full = true;
  depot.forget();
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v2" });
  await depot.until("08:20:30");
  expect(new Set(depot.messages().map((line) => line.slice(13)))).toEqual(new Set(["bay-01 8 A"]));
  expect(depot.messages().length).toBeGreaterThanOrEqual(9);
});

test.each([
  { scope: { kind: "vehicle", vehicle: aVehicle().id } },
  { scope: { kind: "charger", charger: chargerId("bay-01") } },
  { scope: { kind: "site" } },
] as const)(
  "the command of a hold over the $scope.kind keeps its lease while its next level cannot be stored, and that of another hold does not (F05)",
  ({ scope }) => {
    const depot = aPicture();
    depot.allowStarts();
    const releases = new UnrecordedReleases(() => Promise.resolve());
    const bay = [{ charger: chargerId("bay-01"), reassert: false }];
    const hold = aLevelHold({ scope, level: { kind: "current", amperes: amperes(8) } });
    depot.holds.put(hold);
    evaluate(depot, bay, at("05:10"));
    const decided = depot.commands.get(chargerId("bay-01"));
    if (decided === undefined) throw new Error("nothing was decided");
    depot.commands.record({ ...decided, progress: "acknowledged", sentAt: at("05:10"), sends: 1 });
    const higher = aLevelHold({ scope });
    depot.holds.put(higher);
    expect(releases.sendable(depot, bay, at("05:20"))).toEqual(["bay-01"]);
    depot.holds.delete(hold.id);
    depot.holds.put({ ...higher, id: "hold-7-2" });
    expect(releases.sendable(depot, bay, at("05:20"))).toEqual([]);
  },
);

test("an operator's release of a charger under a hold stays, although it could not be stored at first (F05)", async () => {
  const depot = await aDepot().startingAt("07:59").withVehicle("v1", "bay-01").running();
  await depot.until("08:00");
  await depot.hold({ ...UNDER_HOLD, until: { at: "2026-11-21T10:00:00Z" } });
  await depot.until("08:10");
  depot.disk.full = true;
  await depot.free("bay-01");
  await depot.until("08:20");
  depot.disk.full = false;
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 8 A", "bay-01 release"]);
  await depot.restart();
  expect(depot.commands()).toEqual(["bay-01 8 A", "bay-01 release"]);
});
