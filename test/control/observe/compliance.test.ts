import { expect, test } from "vitest";

import type { Charger } from "../../../src/domain/charger.ts";
import { complianceWith } from "../../../src/control/observe/compliance.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import type { Telemetry } from "../../../src/domain/telemetry.ts";
import { amperes, instant, watts } from "../../../src/domain/units.ts";
import { aCharger } from "../../support/aCharger.ts";

const settings = { amperes: 0.5, percent: 5 };
const sixteen: Desired = { kind: "current", amperes: amperes(16) };
const elevenKilowatts: Desired = { kind: "power", watts: watts(11_040) };
const pause: Desired = { kind: "pause" };
const release: Desired = { kind: "release" };

const RELEASED = { desired: release, before: sixteen };
const onBay = (charger: Charger) => ({ charger, vehicle: null });

const judged = (desired: Desired, told: Omit<Telemetry, "at">, before: Desired | null = null) =>
  complianceWith({ desired, before }, { at: instant(0), ...told }, onBay(aCharger()), settings);

test("a charger that reports our limit and draws it follows", () => {
  expect(judged(sixteen, { limitA: 16, currentsA: [15.8, 15.9, 15.7] })).toEqual({
    kind: "followed",
    observation: "reports a limit of 16 A and draws 15.9 A",
  });
});

test("a charger that accepted a limit and draws twice as much does not follow (F89)", () => {
  expect(judged(sixteen, { limitA: 16, currentsA: [31.9, 31.9, 31.9] })).toEqual({
    kind: "notFollowed",
    observation: "setpoint 16 A, reports a limit of 16 A and draws 31.9 A",
  });
});

test("a limit above ours is foreign control, whatever is drawn", () => {
  expect(judged(sixteen, { limitA: 32, currentsA: [0, 0, 0] }).kind).toBe("notFollowed");
});

test("drawing less, or a lower limit of its own, is no violation", () => {
  expect(judged(sixteen, { currentsA: [0, 0, 0] }).kind).toBe("followed");
  expect(judged(sixteen, { limitA: 10 }).kind).toBe("followed");
});

test("0.5 A or 5 %, whichever is more, is tolerated, and the busiest phase counts", () => {
  expect(judged(sixteen, { currentsA: [16.8, 0, 0] }).kind).toBe("followed");
  expect(judged(sixteen, { currentsA: [0, 16.9, 0] }).kind).toBe("notFollowed");
  const six: Desired = { kind: "current", amperes: amperes(6) };
  expect(judged(six, { currentsA: [6.5] }).kind).toBe("followed");
  expect(judged(six, { currentsA: [6.6] }).kind).toBe("notFollowed");
});

test("power is judged as power, where only that is measured", () => {
  expect(judged(elevenKilowatts, { powerW: 11_200 })).toEqual({
    kind: "followed",
    observation: "draws 11.2 kW",
  });
  expect(judged(elevenKilowatts, { powerW: 22_000 }).kind).toBe("notFollowed");
});

/** 50 kW asked of a charger that is configured in watts alone. */
const onDc = (told: Omit<Telemetry, "at">) =>
  complianceWith(
    { desired: { kind: "power", watts: watts(50_000) } },
    { at: instant(0), ...told },
    onBay(aCharger({ maxCurrent: null, minCurrent: null, maxPower: watts(150_000) })),
    settings,
  ).kind;

test("watts are compared with watts, whatever the equivalent in amperes", () => {
  expect(onDc({ powerW: 50_000, currentsA: [125], voltagesV: [400], limitA: 125 })).toBe("followed");
  expect(onDc({ powerW: 60_000, currentsA: [75], voltagesV: [800] })).toBe("notFollowed");
  expect(judged(elevenKilowatts, { powerW: 11_040, currentsA: [17.6, 17.6, 17.6], limitA: 17.6 })).toEqual({
    kind: "followed",
    observation: "reports a limit of 17.6 A and draws 11.04 kW",
  });
  expect(judged(elevenKilowatts, { powerW: 0, limitA: 32 })).toEqual({
    kind: "notFollowed",
    observation: "setpoint 11.04 kW, reports a limit of 32 A and draws 0 kW",
  });
});

test("a charger that draws on more phases than it was switched to does not follow, by its power or its phases", () => {
  const one: Desired = { ...sixteen, phases: { count: 1, since: instant(0), chargingSince: null } };
  expect(judged(one, { currentsA: [16, 0, 0], powerW: 3_680 }).kind).toBe("followed");
  expect(judged(one, { currentsA: [16, 16, 16], powerW: 11_040 })).toEqual({
    kind: "notFollowed",
    observation: "setpoint 16 A on 1 phase, draws 48 A",
  });
  expect(judged(one, { currentsA: [17] }).kind).toBe("notFollowed");
  expect(judged(one, { limitA: 16 })).toEqual({ kind: "followed", observation: "reports a limit of 16 A" });
});

test("a charger that reports no limit and no current cannot be judged", () => {
  expect(judged(sixteen, { state: "charging" })).toEqual({ kind: "unknown" });
  expect(judged(sixteen, { currentsA: [] })).toEqual({ kind: "unknown" });
  expect(judged(pause, {})).toEqual({ kind: "unknown" });
  expect(judged(pause, { state: "unknown" })).toEqual({ kind: "unknown" });
});

test("discharging is judged by power alone, which has a sign", () => {
  const back: Desired = { kind: "power", watts: watts(-5_000) };
  expect(judged(back, { powerW: -5_000 })).toEqual({ kind: "followed", observation: "feeds back 7.2 A" });
  expect(judged(back, { powerW: -5_000, limitA: 0, currentsA: [7.2, 7.2, 7.2] }).kind).toBe("followed");
  expect(judged(back, { powerW: 0 })).toEqual({
    kind: "notFollowed",
    observation: "setpoint -5 kW, draws 0 A",
  });
  expect(judged(back, { limitA: 0, currentsA: [7.2, 7.2, 7.2] })).toEqual({ kind: "unknown" });
  expect(judged(release, { powerW: 3_000, currentsA: [4.3] }, back).kind).toBe("followed");
  expect(judged(release, { powerW: -5_000, currentsA: [7.2] }, back)).toEqual({ kind: "unknown" });
  expect(judged(release, { currentsA: [7.2] }, back)).toEqual({ kind: "unknown" });
});

test("a pause is followed when nothing flows", () => {
  expect(judged(pause, { currentsA: [0.1, 0, 0] })).toEqual({ kind: "followed", observation: "draws 0.1 A" });
  expect(judged(pause, { state: "paused" })).toEqual({ kind: "followed", observation: "reports paused" });
  expect(judged(pause, { limitA: 0 }).kind).toBe("followed");
  expect(judged(pause, { powerW: 4100 })).toEqual({
    kind: "notFollowed",
    observation: "setpoint pause, draws 5.9 A",
  });
  expect(judged(pause, { state: "charging" }).kind).toBe("notFollowed");
});

test("a charger that feeds back does not follow a pause", () => {
  expect(judged(pause, { powerW: -11_040, currentsA: [-16, 0, 0] }).kind).toBe("notFollowed");
  expect(judged(pause, { powerW: -11_040 }).kind).toBe("notFollowed");
});

test("a charger's own limit below our former one is not fought after the end", () => {
  expect(judged(release, { limitA: 12 }, sixteen).kind).toBe("followed");
  expect(judged(release, { limitA: 15.5 }, sixteen).kind).toBe("notFollowed");
});

test("a release is followed when the charger allows or draws more than its former limit", () => {
  expect(judged(release, { limitA: 32 }, sixteen).kind).toBe("followed");
  expect(judged(release, { currentsA: [20] }, sixteen).kind).toBe("followed");
  expect(judged(release, { powerW: 5000 }, pause).kind).toBe("followed");
  expect(judged(release, { limitA: 32 }, { kind: "power", watts: watts(4140) }).kind).toBe("followed");
});

test("a charger that stays limited after the end did not follow the release", () => {
  expect(judged(release, { limitA: 16 }, sixteen)).toEqual({
    kind: "notFollowed",
    observation: "released, reports a limit of 16 A",
  });
  expect(judged(release, { limitA: 0 }, pause).kind).toBe("notFollowed");
});

test("a charger that was limited to its maximum is free when it reports that", () => {
  expect(judged(release, { limitA: 32 }, { kind: "current", amperes: amperes(32) }).kind).toBe("followed");
});

test("a charger without declared limits is free when it allows more than its former limit", () => {
  const plain = aCharger({ minCurrent: null, maxCurrent: null });
  const free = { at: instant(0), limitA: 20 };
  expect(complianceWith(RELEASED, free, onBay(plain), settings).kind).toBe("followed");
  expect(complianceWith(RELEASED, { ...free, limitA: 16 }, onBay(plain), settings).kind).toBe("notFollowed");
});

test("a release is not judged without knowing what it released from, or by a vehicle that draws little", () => {
  expect(judged(release, { limitA: 32 }, null)).toEqual({ kind: "unknown" });
  expect(judged(release, { limitA: 32 }, release)).toEqual({ kind: "unknown" });
  expect(judged(release, { currentsA: [3] }, sixteen)).toEqual({ kind: "unknown" });
});

test("a charger with power limits only is free at its own power", () => {
  const dc = aCharger({
    minCurrent: null,
    maxCurrent: null,
    minPower: watts(5000),
    maxPower: watts(150_000),
  });
  const told: Telemetry = { at: instant(0), limitA: 217.4 };
  expect(
    complianceWith(
      { desired: release, before: { kind: "power", watts: watts(150_000) } },
      told,
      onBay(dc),
      settings,
    ).kind,
  ).toBe("followed");
});
