import { expect, test, vi } from "vitest";

import { decide } from "../../../src/control/decide/evaluate.ts";
import { chargerId, minutes, seconds } from "../../../src/domain/units.ts";
import { commandRecord } from "../../store/sqlite/words.ts";
import { aCharger } from "../../support/aCharger.ts";
import { aDepot } from "../../support/aDepot.ts";
import { at } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";

test("the event of higher priority wins, and the other resumes when it ends (F54)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 120, amperes: 16, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:30", minutes: 30, amperes: 8, priority: 1 })
    .running();
  await depot.until("11:00");
  expect(depot.timedCommands()).toEqual([
    "08:00:00.000 bay-01 16 A",
    "08:30:00.000 bay-01 8 A",
    "09:00:00.000 bay-01 16 A",
    "10:00:00.000 bay-01 release",
  ]);
});

test("every decision names in the record its level and its reason", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01", { name: "Bus 1" })
    .withEvent({ start: "08:00", minutes: 30, amperes: 40 })
    .running();
  await depot.until("09:00");
  expect(depot.audit("decision")).toEqual([
    "bay-01 (Bus 1) to 32 A until 08:30:00: event EV-1 priority 1; 40 A asked, the charger allows 32 A",
    "bay-01 (Bus 1) released: event EV-1 has ended",
  ]);
});

test("observe decides and records everything and publishes no command", async () => {
  const depot = await aDepot()
    .withControl({ mode: "observe" })
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.brokerReturns();
  await depot.online("bay-01", true);
  await depot.restart();
  await depot.until("09:00");
  expect(depot.messages()).toEqual([]);
  expect(depot.audit("decision")).toEqual([
    "observing, not sent: bay-01 (v1) to 10 A until 08:30:00: event EV-1 priority 1",
    "observing, not sent: bay-01 (v1) released: event EV-1 has ended",
  ]);
});

test("the last sent command is kept in observe mode: back in drive mode, the charger is released", async () => {
  const depot = await aDepot()
    .withControl({ onObserve: "keep" })
    .equippedWith({ whenSilent: { kind: "holds" } })
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.restart({ mode: "observe" });
  await depot.deliver({ start: "08:00", minutes: 30, amperes: 8, revision: 1 });
  await depot.until("09:00");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  await depot.stop();
  expect(depot.warnings.at(-1)).toMatch(/^bay-01 stays at 10 A until it is freed/);
  depot.start();
  await depot.restart({ mode: "drive" });
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("the minimum interval holds an increase back, never a reduction or a pause", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { minInterval: "5m" })
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:01");
  await depot.deliver({ start: "08:00", amperes: 20, revision: 1 });
  await depot.until("08:06");
  await depot.deliver({ start: "08:00", amperes: 12, revision: 2 });
  await depot.passes(1000);
  await depot.deliver({ start: "08:00", amperes: 0, revision: 3 });
  await depot.passes(1000);
  expect(depot.timedCommands()).toEqual([
    "08:00:00.000 bay-01 10 A",
    "08:05:00.000 bay-01 20 A",
    "08:06:00.001 bay-01 12 A",
    "08:06:01.011 bay-01 pause",
  ]);
});

test("the dead band swallows a small increase, never a reduction", async () => {
  const depot = await aDepot()
    .withControl({ deadband: 2 })
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:01");
  await depot.deliver({ start: "08:00", amperes: 11, revision: 1 });
  await depot.deliver({ start: "08:00", amperes: 9.5, revision: 2 });
  await depot.deliver({ start: "08:00", amperes: 12, revision: 3 });
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 9.5 A", "bay-01 12 A"]);
});

test("a charger that an operator frees stays free until the event ends, and later events apply", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .withEvent({ id: "EV-2", start: "08:30", minutes: 60, amperes: 12, vehicles: ["v1"], priority: 9 })
    .running();
  await depot.until("08:10");
  depot.forget();
  await depot.free("bay-01");
  await depot.until("08:20");
  await depot.restart();
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual([
    "08:10:00.001 bay-01 release",
    "08:30:00.000 bay-01 12 A",
    "09:00:00.000 bay-02 release",
    "09:30:00.000 bay-01 release",
  ]);
  expect(depot.audit("operator")).toEqual([
    "bay-01 freed by an operator until 09:00:00",
    expect.stringMatching(/^hold hold-\d+-1 of operator on bay-01 ended after 50 min: its events are over$/),
  ]);
});

test("freeing a charger without a limit sends nothing", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent({ start: "08:00" }).running();
  await depot.free("bay-01");
  await depot.until("08:01");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("a configured level at the end is sent once, and stays", async () => {
  const depot = await aDepot()
    .withControl({ atEnd: { current: 16 } })
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10 A", "08:30:00.000 bay-01 16 A"]);
});

test("a restart leaves a charger alone whose vehicle only telemetry had named", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withVehicle("v1", null)
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1" });
  await depot.until("08:10");
  await depot.restart();
  await depot.until("08:20");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("a withdrawn event is what the release names", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.withdraw("EV-1", 1);
  await depot.until("08:30");
  expect(depot.audit("decision").at(-1)).toBe("bay-01 (v1) released: event EV-1 was withdrawn");
});

test.each([
  [{ minutes: 60, vehicles: ["v2"] }, "was changed and no longer asks for Bus 1"],
  [{ minutes: 5 }, "was changed and has ended"],
  [{ minutes: 20 }, "has ended"],
  [{ minutes: 60, start: "10:00" }, "was changed and does not ask for Bus 1 yet"],
])("an edit in the middle, %j, is what the release names", async (edit, words) => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01", { name: "Bus 1" })
    .withVehicle("v2", "bay-02")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.deliver({ id: "EV-1", start: "08:00", amperes: 10, revision: 1, ...edit });
  await depot.until("08:30");
  expect(depot.audit("decision")).toContain(`bay-01 (Bus 1) released: event EV-1 ${words}`);
});

test("a charger freed a second time stays free of the events of the first time", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 120, amperes: 10, priority: 2 })
    .withEvent({ id: "EV-2", start: "08:30", minutes: 30, amperes: 16, priority: 1 })
    .running();
  await depot.until("08:10");
  await depot.free("bay-01");
  await depot.until("08:40");
  await depot.free("bay-01");
  await depot.until("11:00");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release", "bay-01 16 A", "bay-01 release"]);
});

test("a charger that an operator freed stays free when its event is extended", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.free("bay-01");
  await depot.until("08:20");
  await depot.deliver({ id: "EV-1", start: "08:00", minutes: 120, amperes: 10, revision: 1 });
  await depot.until("11:00");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("a hold ends with its events: a new event of the same id applies", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 600, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.free("bay-01");
  await depot.until("08:30");
  await depot.withdraw("EV-1", 0);
  await depot.until("09:30");
  await depot.deliver({ id: "EV-1", start: "12:30", minutes: 60, amperes: 12, revision: 9 });
  await depot.until("14:00");
  expect(depot.timedCommands().slice(2)).toEqual(["12:30:00.000 bay-01 12 A", "13:30:00.000 bay-01 release"]);
});

test("a fetch that was on its way when an event came does not withdraw it", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.partner.events.delete("EV-1");
  depot.partner.takesMs = 3_000;
  while (!depot.partner.asked.some((what) => what.includes("EV-1"))) await depot.passes(500);
  await depot.deliver({ start: "08:00", minutes: 120, amperes: 12, revision: 5 });
  await depot.until("08:20");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 12 A"]);
});

test("a resend that failed is tried again also where writes are limited", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.forget();
  await depot.online("bay-01", false);
  depot.floor.publishing("bay-01", "fails");
  await depot.online("bay-01", true);
  await depot.passes(500);
  depot.floor.publishing("bay-01", "works");
  await depot.until("08:12");
  expect(depot.messages()).toHaveLength(1);
});

test("a level for the end is for the phases that a charger has been switched to", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withControl({ atEnd: { power: 11 } })
    .equippedWith({
      takesWatts: false,
      phaseSwitching: { every: minutes(15), settle: seconds(10), deadTime: seconds(60) },
    })
    .withEvent({ start: "08:00", minutes: 60, kilowatts: 2.3 })
    .running();
  await depot.until("09:01");
  expect(depot.commands().at(-1)).toBe("bay-01 32 A on 1 phase");
});

test("a release is judged against the last sent command", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .withEvent({ id: "EV-2", start: "09:00", minutes: 60, amperes: 20 })
    .running();
  await depot.until("08:50");
  await depot.online("bay-01", false);
  await depot.until("10:05");
  await depot.online("bay-01", true);
  await depot.passes(35_000);
  await depot.telemetry("bay-01", { state: "charging", limitA: 10, currentsA: [10, 10, 10] });
  expect(depot.audit("outcome").at(-1)).toContain("not followed: released, reports a limit of 10 A");
});

test("a hold outlives a clock that is set back before its event", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.free("bay-01");
  await depot.until("08:12");
  depot.forget();
  vi.setSystemTime(Date.parse("2026-11-21T07:00:00Z"));
  await depot.passes(120_000);
  vi.setSystemTime(Date.parse("2026-11-21T08:15:00Z"));
  await depot.until("08:30");
  expect(depot.commands()).toEqual([]);
});

test("a charger that was limited before commissioning, and is away when it ends, is named at the stop", async () => {
  const depot = await aDepot()
    .equippedWith({ whenSilent: { kind: "holds" } })
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.lends("bay-01");
  await depot.until("08:12");
  await depot.online("bay-01", false);
  await depot.takesBack("bay-01");
  await depot.until("09:10");
  await depot.stop();
  expect(depot.warnings.join()).toContain("bay-01 stays at");
});

test("a command that may have arrived before a power cut is named at the stop", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .running();
  depot.floor.publishing("bay-01", "hangs");
  await depot.until("08:00:02");
  await depot.stop();
  depot.floor.failInFlight();
  await depot.until("09:30");
  depot.warnings.length = 0;
  depot.start();
  depot.brokerGoes();
  await depot.passes(35_000);
  await depot.stop();
  expect(depot.warnings.join()).toContain("bay-01 stays at");
});

test("a resend that failed is repeated after a failed commit too, and otherwise not", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ refresh: null })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 600, amperes: 10 })
    .running();
  await depot.until("08:10");
  depot.forget();
  await depot.online("bay-01", false);
  depot.floor.publishing("bay-01", "fails");
  await depot.online("bay-01", true);
  await depot.passes(300);
  depot.disk.full = true;
  await depot.deliver({ id: "EV-9", start: "20:00", minutes: 60, amperes: 10 });
  depot.disk.full = false;
  await depot.telemetry("bay-01", { state: "charging", limitA: 10, currentsA: [10, 10, 10] });
  depot.floor.publishing("bay-01", "works");
  await depot.until("08:30");
  expect(depot.messages()).toHaveLength(1);
  depot.disk.full = true;
  for (let minute = 30; minute < 40; minute += 1) {
    await depot.until(`08:${minute}`);
    await depot.deliver({ id: "EV-9", start: "20:00", minutes: 60, amperes: 10, revision: minute });
  }
  expect(depot.messages()).toHaveLength(1);
});

test.each([
  { before: "waits for its publish", epoch: 7, isInFlight: false, replaces: null },
  { before: "is on its way", epoch: 7, isInFlight: true, replaces: { kind: "current", amperes: 16 } },
  { before: "is of an earlier run", epoch: 6, isInFlight: false, replaces: { kind: "current", amperes: 16 } },
])(
  "a decision replaces the level of a command that $before: $replaces",
  ({ epoch, isInFlight, replaces }) => {
    const depot = aPicture();
    const bay = chargerId("bay-01");
    depot.commands.record(commandRecord(bay, 1, epoch));
    if (isInFlight) depot.sendQueue.startPublish(bay, 1);
    decide(
      depot,
      depot.verdictOn(aCharger(), at("05:10")),
      { desired: { kind: "pause" }, until: null, vehicle: null, event: null, cause: "operator" },
      at("05:10"),
    );
    expect(depot.commands.get(bay)?.replaces).toEqual(replaces);
  },
);
