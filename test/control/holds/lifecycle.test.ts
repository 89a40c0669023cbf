import { expect, test } from "vitest";

import { effectRow } from "../../../src/control/holds/untilEvents.ts";
import { chargerId, eventId, vehicleId } from "../../../src/domain/units.ts";
import { aDepot } from "../../support/aDepot.ts";
import { at } from "../../support/anEvent.ts";
import { aLevelHold, anHour } from "../../support/aHold.ts";
import { aPicture } from "../../support/aPicture.ts";
import { virtualNow } from "../../support/virtualTime.ts";
import type { TestDepot } from "../../support/testDepot.ts";

const LEVEL = { kind: "level", level: { currentA: 8 }, reason: "leaves early" } as const;
const EXEMPT = { kind: "exempt", reason: "leaves early" } as const;
const bay = { scope: { charger: "bay-01" } } as const;
const until = (time: string) => ({ until: { at: `2026-11-21T${time}:00Z` } });
const value = (answer: unknown) => (answer as { readonly value: Record<string, never> }).value;

test("a level beats the event, ends at its time, and the event applies again", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "00:00", minutes: 120, amperes: 16 })
    .running();
  const opened = value(await depot.hold({ ...bay, ...LEVEL, ...until("01:00") }));
  expect(opened).toMatchObject({
    by: "anna",
    effect: [
      { charger: "bay-01", vehicle: "v1", level: { currentA: 8 }, overrules: ["EV-1"], applies: true },
    ],
    others: [],
  });
  expect(depot.commands()).toEqual(["bay-01 16 A", "bay-01 8 A"]);
  await depot.until("01:01");
  expect(depot.timedCommands().slice(1)).toEqual(["00:00:01.010 bay-01 8 A", "01:00:00.000 bay-01 16 A"]);
  expect(depot.audit("operator")).toEqual([
    expect.stringMatching(/^hold hold-\d+-1 opened by anna: bay-01 8 A until 01:00:00: leaves early$/),
    expect.stringMatching(/event EV-1 does not apply to bay-01, which gets 8 A until 01:00:00$/),
    expect.stringMatching(/of anna on bay-01 ended after 1 h 0 min: its time has come$/),
  ]);
});

test("a hold until the unplug ends where the next vehicle comes within the same moment", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "00:00", minutes: 120, amperes: 16 })
    .running();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.hold({ ...bay, ...LEVEL, until: { unplugged: true } });
  await depot.passes(10_000);
  for (const state of ["unplugged", "charging"] as const)
    depot.says({ kind: "telemetry", charger: chargerId("bay-01"), telemetry: { at: virtualNow(), state } });
  await depot.passes(1_000);
  expect(depot.commands()).toEqual(["bay-01 16 A", "bay-01 8 A", "bay-01 16 A"]);
  expect(depot.audit("operator").at(-1)).toMatch(/ended after 0 min: unplugged$/);
});

test("a hold never raises a charger above its limits or those of its vehicle", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01", { current: { max: 20 } })
    .running();
  const opened = value(await depot.hold({ ...bay, ...LEVEL, level: { currentA: 63 }, ...until("01:00") }));
  expect(opened["effect"]).toMatchObject([
    { level: { currentA: 20 }, limits: ["63 A asked, 32 A allowed", "32 A asked, 20 A allowed"] },
  ]);
  expect(depot.commands()).toEqual(["bay-01 20 A"]);
  await depot.until("01:01");
  expect(depot.commands()).toEqual(["bay-01 20 A", "bay-01 release"]);
});

test("an exemption keeps every event away, also one that starts later, and a pause is a level", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withVehicle("v2", "bay-02").running();
  await depot.hold({ ...bay, ...EXEMPT, ...until("02:00") });
  await depot.hold({ scope: { charger: "bay-02" }, ...LEVEL, level: { pause: true }, ...until("02:00") });
  await depot.deliver({ start: "01:00", minutes: 120, amperes: 10 });
  await depot.until("01:30");
  expect(depot.commands()).toEqual(["bay-02 pause"]);
  await depot.until("02:01");
  expect(depot.timedCommands().slice(1).toSorted()).toEqual([
    "02:00:00.000 bay-01 10 A",
    "02:00:00.000 bay-02 10 A",
  ]);
});

test("a vehicle's hold moves along with it", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withVehicle("v1", null, { identities: [{ mac: "02:aa:bb:00:00:01" }] })
    .running();
  const identity = { kind: "mac", value: "02:aa:bb:00:00:01" };
  await depot.telemetry("bay-01", { state: "charging", identity });
  await depot.hold({ scope: { vehicle: "v1" }, ...LEVEL, ...until("02:00") });
  expect(depot.commands()).toEqual(["bay-01 8 A"]);
  await depot.telemetry("bay-01", { state: "unplugged", identity: null });
  await depot.passes(120_000);
  await depot.telemetry("bay-02", { state: "charging", identity });
  await depot.passes(1000);
  expect(depot.commands()).toContain("bay-02 8 A");
  expect(depot.commands()).toContain("bay-01 release");
});

test("the newest hold wins, and the site's yields to a narrower one", async () => {
  const depot = await aDepot().withVehicles(2).running();
  const site = value(await depot.hold({ scope: { site: true }, ...LEVEL, ...until("03:00") }));
  const first = value(
    await depot.hold({ ...bay, ...LEVEL, level: { currentA: 10 }, ...until("03:00") }, "ben"),
  );
  expect(first["others"]).toMatchObject([{ id: site["id"], scope: { site: true } }]);
  await depot.hold(
    { scope: { vehicle: "v1" }, ...LEVEL, level: { currentA: 12 }, ...until("02:00") },
    "cleo",
  );
  await depot.hold({ scope: { site: true }, ...EXEMPT, ...until("01:00") });
  expect(depot.commands().filter((command) => command.startsWith("bay-01"))).toEqual([
    "bay-01 8 A",
    "bay-01 10 A",
    "bay-01 12 A",
  ]);
  await depot.until("03:01");
  expect(depot.timedCommands().slice(-4)).toEqual([
    "01:00:00.000 bay-02 8 A",
    "02:00:00.000 bay-01 10 A",
    expect.stringMatching(/^03:00:00.000 bay-0. release$/),
    expect.stringMatching(/^03:00:00.000 bay-0. release$/),
  ]);
});

test("a hold until unplugged ends when the charger reports that, and only then", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.hold({ ...bay, ...LEVEL, until: { unplugged: true } });
  await depot.telemetry("bay-01", { state: "paused" });
  await depot.until("05:00");
  expect(depot.commands()).toEqual(["bay-01 8 A"]);
  await depot.telemetry("bay-01", { state: "unplugged" });
  expect(depot.commands()).toEqual(["bay-01 8 A", "bay-01 release"]);
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
  expect(await depot.hold({ ...bay, ...LEVEL, until: { unplugged: true } })).toMatchObject({
    problem: { errors: [{ path: "until.unplugged" }] },
  });
});

test("a hold until unplugged ends when another vehicle is there", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withVehicle("v1", null, { identities: [{ mac: "02:aa:bb:00:00:01" }] })
    .withVehicle("v2", null, { identities: [{ mac: "02:aa:bb:00:00:02" }] })
    .running();
  await depot.telemetry("bay-01", { identity: { kind: "mac", value: "02:aa:bb:00:00:01" } });
  await depot.hold({ ...bay, ...LEVEL, until: { unplugged: true } });
  await depot.telemetry("bay-01", { identity: { kind: "mac", value: "02:aa:bb:00:00:02" } });
  expect(depot.commands()).toEqual(["bay-01 8 A", "bay-01 release"]);
});

test("a hold until unplugged goes on after a restart, also where another vehicle is fixed to the charger", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withVehicle("v2", "bay-02").running();
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v2" });
  await depot.hold({ ...bay, ...LEVEL, until: { unplugged: true } });
  await depot.hold({ scope: { vehicle: "v2" }, ...LEVEL, until: { unplugged: true } });
  await depot.restart();
  await depot.passes(60_000);
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{}, {}] });
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v2" });
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{}, {}] });
  await depot.telemetry("bay-01", { state: "unplugged", vehicle: null });
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
});

test("a hold until an energy is delivered ends with it, also across a restart", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const energy = { ...bay, ...LEVEL, until: { energyWh: 5000 } };
  expect(await depot.hold(energy)).toMatchObject({ problem: { errors: [{ path: "until.energyWh" }] } });
  await depot.telemetry("bay-01", { state: "charging", energyWh: 100_000 });
  await depot.hold(energy);
  await depot.telemetry("bay-01", { energyWh: 103_000 });
  expect(depot.holds()).toMatchObject({ value: [{ energyWh: 5000, deliveredWh: 3000 }] });
  await depot.restart();
  await depot.telemetry("bay-01", { energyWh: 104_999 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "open", deliveredWh: 4999 }] });
  await depot.telemetry("bay-01", { energyWh: 105_001 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "ended", ended: { by: "setpointd" } }] });
  expect(depot.commands().at(-1)).toBe("bay-01 release");
});

test("energy counts on after the register starts anew, and at the vehicle's next charger", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withVehicle("v1", null, { identities: [{ mac: "02:aa:bb:00:00:01" }] })
    .running();
  const identity = { kind: "mac", value: "02:aa:bb:00:00:01" };
  await depot.telemetry("bay-01", { identity, sessionWh: 1000 });
  await depot.hold({ scope: { vehicle: "v1" }, ...EXEMPT, until: { energyWh: 3000 } });
  await depot.telemetry("bay-01", { identity, sessionWh: 2000 });
  await depot.telemetry("bay-01", { state: "unplugged", identity: null });
  await depot.passes(120_000);
  await depot.telemetry("bay-02", { identity, sessionWh: 0 });
  await depot.telemetry("bay-02", { identity, sessionWh: 1500 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "open", deliveredWh: 2500 }] });
  await depot.telemetry("bay-02", { identity, sessionWh: 2000 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "ended" }] });
});

test("energy of a session counts on after the vehicle is plugged in again, and across a restart", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.telemetry("bay-01", { state: "charging", sessionWh: 0 });
  await depot.hold({ ...bay, ...EXEMPT, until: { energyWh: 18_000 } });
  await depot.telemetry("bay-01", { state: "charging", sessionWh: 10_000 });
  expect(depot.holds()).toMatchObject({ value: [{ deliveredWh: 10_000 }] });
  await depot.restart();
  await depot.telemetry("bay-01", { state: "unplugged", sessionWh: 0 });
  await depot.telemetry("bay-01", { state: "charging", sessionWh: 0 });
  expect(depot.holds()).toMatchObject({ value: [{ deliveredWh: 10_000 }] });
  await depot.telemetry("bay-01", { state: "charging", sessionWh: 7_900 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "open", deliveredWh: 17_900 }] });
  await depot.telemetry("bay-01", { state: "charging", sessionWh: 8_000 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "ended" }] });
});

test("the next vehicle at the charger that a vehicle has left adds nothing to its energy", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withVehicle("v1", null)
    .withVehicle("v2", null)
    .running();
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1", sessionWh: 1_000 });
  await depot.hold({ scope: { vehicle: "v1" }, ...EXEMPT, until: { energyWh: 9_000 } });
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1", sessionWh: 2_000 });
  await depot.telemetry("bay-01", { state: "unplugged", vehicle: null, sessionWh: 0 });
  await depot.passes(120_000);
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v2", sessionWh: 8_500 });
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1", sessionWh: 0 });
  expect(depot.holds()).toMatchObject({ value: [{ state: "open", deliveredWh: 1_000 }] });
});

test("a release is an exemption that later events end, and a second one includes the first", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "00:00", minutes: 60, amperes: 16 })
    .running();
  await depot.free("bay-01");
  expect(depot.holds()).toMatchObject({
    value: [{ kind: "exempt", scope: { charger: "bay-01" }, events: ["EV-1"], reason: "release" }],
  });
  await depot.deliver({ id: "EV-2", start: "00:10", minutes: 60, amperes: 10, priority: 0 });
  await depot.until("00:11");
  await depot.free("bay-01");
  expect(depot.holds({ state: "open" })).toMatchObject({ value: [{ events: ["EV-1", "EV-2"] }] });
  expect(depot.commands()).toEqual(["bay-01 16 A", "bay-01 release", "bay-01 10 A", "bay-01 release"]);
  await depot.until("02:00");
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
});

test("a release ends the level of a hold, and exempts a charger from that of the site", async () => {
  const depot = await aDepot().withVehicles(2).running();
  await depot.hold({ ...bay, ...LEVEL, ...until("02:00") });
  await depot.free("bay-01");
  expect(depot.commands()).toEqual(["bay-01 8 A", "bay-01 release"]);
  await depot.hold({ scope: { site: true }, ...LEVEL, ...until("02:00") });
  depot.forget();
  await depot.free("bay-02");
  expect(depot.commands()).toEqual(["bay-02 release"]);
  await depot.until("02:01");
  expect(depot.commands()).toEqual(["bay-02 release", "bay-01 release"]);
});

test("a hold survives a restart, and an ended one is forgotten after a day", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const { id } = value(await depot.hold({ ...bay, ...LEVEL, ...until("10:00") }));
  await depot.restart();
  expect(depot.holds()).toMatchObject({ value: [{ id, state: "open", by: "anna" }] });
  expect(depot.standing()).toEqual(["bay-01 8 A until 10:00:00.000"]);
  await depot.endHold(id ?? "", "the bus has left", "ben");
  expect(depot.commands().at(-1)).toBe("bay-01 release");
  await depot.restart();
  expect(depot.holds()).toMatchObject({
    value: [{ state: "ended", ended: { by: "ben", why: "the bus has left" } }],
  });
  await depot.passes(25 * anHour);
  expect(depot.holds()).toEqual({ ok: true, value: [] });
});

test("a hold that was ended early is known for a day, beyond the end that it had", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const request = { ...bay, ...LEVEL, ...until("01:00") };
  const { id } = value(await depot.hold(request, "anna", "key-1"));
  await depot.until("00:30");
  await depot.endHold(id ?? "");
  await depot.until("02:00");
  expect(depot.holds()).toMatchObject({ value: [{ id, state: "ended" }] });
  await depot.restart();
  expect(value(await depot.hold(request, "anna", "key-1"))).toMatchObject({ id, state: "ended" });
  await depot.passes(23 * anHour);
  expect(depot.holds()).toEqual({ ok: true, value: [] });
});

test("a hold whose end cannot be stored is tried again every few seconds, and ends when the disk accepts that", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.hold({ ...bay, ...LEVEL, ...until("01:00") });
  await depot.until("00:59");
  depot.disk.full = true;
  await depot.until("01:01");
  const looks = depot.looks;
  await depot.passes(60_000);
  expect(depot.looks - looks).toBeLessThan(100);
  depot.disk.full = false;
  await depot.passes(10_000);
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
});

test("a hold over several chargers whose end cannot be stored does not make them evaluate each other without a pause", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withEvent({ start: "00:00", minutes: 60, amperes: 16, vehicles: ["v1", "v2"] })
    .running();
  await depot.until("00:30");
  const pause = { scope: { site: true }, kind: "level", level: { pause: true }, reason: "work on the panel" };
  expect(await depot.hold({ ...pause, until: { events: true } })).toMatchObject({ ok: true });
  await depot.until("00:59");
  depot.disk.full = true;
  await depot.until("01:01");
  const looks = depot.looks;
  await depot.passes(60_000);
  expect(depot.looks - looks).toBeLessThan(100);
  depot.disk.full = false;
  await depot.passes(10_000);
  expect(depot.holds({ state: "open" })).toEqual({ ok: true, value: [] });
});

test("a hold that cannot be stored changes nothing", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  depot.disk.full = true;
  expect(await depot.hold({ ...bay, ...LEVEL, ...until("10:00") })).toMatchObject({
    ok: false,
    problem: { status: 503 },
  });
  depot.disk.full = false;
  await depot.passes(60_000);
  expect([depot.commands(), depot.holds()]).toEqual([[], { ok: true, value: [] }]);
});

test("in observe mode a hold is decided and recorded, and never published", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withControl({ mode: "observe" }).running();
  const opened = value(await depot.hold({ ...bay, ...LEVEL, ...until("10:00") }));
  expect(opened["effect"]).toMatchObject([
    { level: { currentA: 8 }, waits: "mode observe: decided and recorded, not sent" },
  ]);
  expect(depot.commands()).toEqual([]);
});

test.each([
  ["offline", (depot: TestDepot) => depot.online("bay-02", false)],
  ["silent", (depot: TestDepot) => depot.passes(20 * 60_000)],
])(
  "a charger that is %s for a while ends no hold until unplugged of the vehicle that it names",
  async (_, goes) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withVehicle("v2", "bay-02")
      .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
      .running();
    await depot.until("08:10");
    await depot.telemetry("bay-01", { state: "unplugged" });
    await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
    await depot.hold({
      scope: { vehicle: "v1" },
      kind: "level",
      level: { currentA: 20 },
      until: { unplugged: true },
      reason: "late",
    });
    await goes(depot);
    await depot.passes(60_000);
    const open = () => depot.audit("operator").filter((words) => words.includes("ended"));
    expect(open()).toEqual([]);
    await depot.online("bay-02", true);
    await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
    await depot.passes(1000);
    expect(depot.standing()).toContainEqual(expect.stringContaining("bay-02 20 A"));
    // Another charger reports it.
    await depot.online("bay-02", false);
    await depot.telemetry("bay-01", { state: "charging", vehicle: "v1" });
    await depot.passes(1000);
    expect(open()).toHaveLength(1);
  },
);

test("a silence that ends with an answer to a command ends no hold until unplugged: the vehicle is where it was", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withVehicle("v2", "bay-02")
    .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("08:10");
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  const level = { kind: "level", level: { currentA: 20 }, until: { unplugged: true }, reason: "late" };
  await depot.hold({ scope: { vehicle: "v1" }, ...level });
  depot.floor.answers = "silent";
  await depot.passes(10 * 60_000);
  expect(depot.standing()).toContainEqual(expect.stringContaining("bay-01 20 A"));
  depot.floor.answers = "accepts";
  await depot.passes(2 * 60_000);
  expect(depot.audit("operator").filter((words) => words.includes("ended"))).toEqual([]);
  expect(depot.standing()).toContainEqual(expect.stringContaining("bay-02 20 A"));
});

test("an event that a hold sets aside is on record once for each, as the moment from which its vehicle is opted out", () => {
  const depot = aPicture();
  const [charger, now] = [chargerId("bay-01"), at("05:10")];
  const aside = { hold: aLevelHold(), event: eventId("EV-7731"), vehicle: vehicleId("veh-214") };
  expect(effectRow(depot, charger, aside, now)).toMatchObject({
    entry: {
      kind: "operator",
      at: now,
      charger,
      vehicle: "veh-214",
      event: "EV-7731",
      facts: { cause: "operator", hold: "hold-7-1", effect: true },
    },
  });
  expect(effectRow(depot, charger, aside, now)).toBeNull();
  expect(effectRow(depot, charger, { ...aside, event: eventId("EV-2") }, now)).not.toBeNull();
});
