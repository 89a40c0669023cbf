import { expect, test } from "vitest";

import { ABSENT } from "../../src/control/observe/presence.ts";
import { ChargerFacts, diskSpace, manyUnreachable } from "../../src/daemon/alarmFacts.ts";
import type { CommandRecord } from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { after, amperes, chargerId, minutes, watts } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { commandRecord, NOON } from "../store/sqlite/words.ts";
import { aCharger } from "../support/aCharger.ts";
import { aPicture } from "../support/aPicture.ts";

const BAY = chargerId("bay-01");
const at = (min: number) => after(NOON, minutes(min));

const PLUGGED: Telemetry = { at: NOON, state: "connected", powerW: 0 };

/** A site with a command for bay-01 and its readings. */
function aSite(desired: Desired, more: Partial<CommandRecord> = {}, readings: Telemetry | null = PLUGGED) {
  const state = aPicture({
    chargers: [
      aCharger({ minCurrent: amperes(6), minPower: watts(4000) }),
      aCharger({ id: "bay-02", minCurrent: null, minPower: null }),
    ],
  });
  const report = (telemetry: Telemetry | null): void =>
    state.presence.update(BAY, { ...ABSENT, online: true, heardAt: NOON, telemetry });
  report(readings);
  const record = commandRecord("bay-01", 1);
  state.commands.record({
    ...record,
    progress: "accepted",
    ...more,
    command: { ...record.command, desired },
  });
  const facts = new ChargerFacts(state);
  const shown = (min: number, isReachable = true) => runToEnd(facts.facts(() => isReachable, at(min)));
  return { state, report, shown };
}

const TEN: Desired = { kind: "current", amperes: amperes(10) };
const RELEASE: Desired = { kind: "release" };

test("a plugged vehicle that draws no power for three minutes although it may is a fact until it draws some", () => {
  const { report, shown } = aSite(TEN);
  expect(shown(0)).toEqual([]);
  expect(shown(2)).toEqual([]);
  expect(shown(3)).toMatchObject([
    {
      kind: "noPower",
      subject: "bay-01",
      severity: "warning",
      since: NOON,
      message: "Bus 214 at bay-01 draws no power although 10 A is allowed",
    },
  ]);
  report({ ...PLUGGED, powerW: 2300 });
  expect(shown(4)).toEqual([]);
  report(PLUGGED);
  expect(shown(5)).toEqual([]);
});

test.each<[string, Desired, Partial<CommandRecord>, Telemetry | null]>([
  ["the setpoint is the minimum", { kind: "current", amperes: amperes(6) }, {}, PLUGGED],
  ["the power is below the minimum", { kind: "power", watts: watts(4000) }, {}, PLUGGED],
  ["it is paused by us", { kind: "pause" }, {}, PLUGGED],
  ["the command was not sent", TEN, { progress: "planned" }, PLUGGED],
  ["the charger refused", TEN, { progress: "refused" }, PLUGGED],
  ["it is only observed", TEN, { progress: "observed" }, PLUGGED],
  ["nothing is plugged in", TEN, {}, { ...PLUGGED, state: "unplugged" }],
  ["it is done", TEN, {}, { ...PLUGGED, state: "finished" }],
  ["it is full", TEN, {}, { ...PLUGGED, soc: 100 }],
  ["it draws power", TEN, {}, { ...PLUGGED, powerW: 150 }],
  ["it draws a current", TEN, {}, { at: NOON, state: "charging", currentsA: [0, 6, 0] }],
  ["its power is not known", TEN, {}, { at: NOON, state: "charging" }],
  ["the charger has reported nothing", TEN, {}, null],
])("a vehicle that draws no power is not reported while %s", (_, desired, more, readings) => {
  const { shown } = aSite(desired, more, readings);
  shown(0);
  expect(shown(5)).toEqual([]);
});

test("without a configured minimum every level counts, and currents stand for the power", () => {
  const { state, report, shown } = aSite({ kind: "power", watts: watts(5000) });
  report({ at: NOON, state: "connected", soc: 80, currentsA: [0.1, 0, 0] });
  const record = commandRecord("bay-02", 2);
  for (const desired of [TEN, { kind: "power", watts: watts(100) } as const]) {
    state.commands.record({ ...record, progress: "followed", command: { ...record.command, desired } });
    state.presence.update(chargerId("bay-02"), {
      ...ABSENT,
      telemetry: { at: NOON, state: "paused", powerW: 5 },
    });
    shown(0);
    expect(shown(3).map(({ message }) => message)).toContain(
      `the vehicle at bay-02 draws no power although ${desired.kind === "power" ? "0.1 kW" : "10 A"} is allowed`,
    );
  }
});

test("the time without power counts only while readings arrive", () => {
  const { shown } = aSite(TEN);
  shown(0);
  expect(shown(3, false)).toEqual([]);
  expect(shown(4)).toEqual([]);
  expect(shown(7)).toHaveLength(1);
});

test("a release that is not confirmed within three minutes is critical", () => {
  const replaces: Desired = { kind: "current", amperes: amperes(6) };
  const { shown } = aSite(RELEASE, { progress: "notFollowed", replaces });
  expect(shown(2)).toEqual([]);
  expect(shown(3)).toMatchObject([
    {
      kind: "releaseUnconfirmed",
      severity: "critical",
      since: NOON,
      message: "the release of bay-01 is not confirmed: it may still be limited to 6 A",
    },
  ]);
  expect(aSite(RELEASE, { progress: "planned", replaces, outAt: at(1) }).shown(3)).toMatchObject([
    { since: at(1), message: expect.stringContaining("was not sent") },
  ]);
  // A decision that was only observed replaced the release.
  const released = commandRecord("bay-01", 1);
  const command = { ...released.command, desired: RELEASE };
  const standing: CommandRecord = { ...released, command, progress: "refused", replaces };
  expect(aSite(TEN, { progress: "observed", standing }).shown(60)).toMatchObject([
    { kind: "releaseUnconfirmed", subject: "bay-01" },
  ]);
});

test.each<[string, Partial<CommandRecord>]>([
  ["it is followed", { progress: "followed", replaces: TEN }],
  ["the charger accepted it, and shows no limit", { progress: "accepted", replaces: TEN }],
  ["nothing limited the charger", { progress: "notFollowed", replaces: null }],
  ["it was released before", { progress: "notFollowed", replaces: RELEASE }],
])("a release is no fact while %s", (_, more) => {
  expect(aSite(RELEASE, more).shown(60)).toEqual([]);
});

test("a charger that left the configuration has a problem of its own", () => {
  const { state, shown } = aSite(TEN);
  const gone = commandRecord("bay-09", 3);
  state.commands.record({
    ...gone,
    progress: "notFollowed",
    replaces: TEN,
    command: { ...gone.command, desired: RELEASE },
  });
  expect(shown(60)).toEqual([]);
});

test.each([
  [5e9, 1e9, null],
  [2.9e9, 1e9, "warning"],
  [0.1e9, 1e9, "critical"],
  [0.3e9, 4e9, null],
  [0.1e9, 4e9, "critical"],
  [null, 1e9, null],
])("%d bytes free beside %d of 4 GB allowed: %s", (free, bytes, severity) => {
  expect(diskSpace({ free, bytes }, 4e9)?.severity ?? null).toBe(severity);
});

test("the space that is missing is named", () => {
  expect(diskSpace({ free: 2e9, bytes: 1e9 }, 4e9)?.message).toBe(
    "the disk of the state folder has 2 GB left, and the stored data may take 3 GB more",
  );
});

test.each([
  [1, 2, false],
  [2, 20, true],
  [2, 21, false],
  [0, 0, false],
])("%d of %d chargers that are unreachable are many: %s", (count, all, isFact) => {
  expect(manyUnreachable(count, all) !== null).toBe(isFact);
});
