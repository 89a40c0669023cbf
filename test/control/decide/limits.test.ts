import * as fc from "fast-check";
import { expect, test } from "vitest";
import { asSwitched, limit, voltageInUse, wattsPerAmpere } from "../../../src/control/decide/limits.ts";
import { levelOnRecord, type Setpoint } from "../../../src/domain/setpoint.ts";
import { amperes, instant, watts } from "../../../src/domain/units.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";

const A = (level: number): Setpoint => ({ kind: "current", amperes: amperes(level) });
const W = (level: number): Setpoint => ({ kind: "power", watts: watts(level) });

/** `16 A`, or `32 A: 40 A asked, charger maximum` where something bit. */
function said(
  asked: Setpoint,
  charger: Parameters<typeof aCharger>[0] = {},
  vehicle: Parameters<typeof aVehicle>[0] = {},
  volts: number | null = null,
): string {
  const { desired, limits } = limit(asked, aCharger(charger), aVehicle(vehicle), volts);
  return [levelOnRecord(desired), ...limits.map(({ by, asked }) => `${asked} asked, ${by}`)].join(": ");
}

test("a level within all limits is unchanged", () => {
  expect([said(A(16)), said(A(6)), said(A(32)), said(W(11_000))]).toEqual(["16 A", "6 A", "32 A", "11000 W"]);
});

test("levels are rounded down to 0.1 A and 1 W", () => {
  expect([said(A(13.79)), said(W(11_000.9)), said(A(0.1 * 3 * 20)), said(A(8.2))]).toEqual([
    "13.7 A",
    "11000 W",
    "6 A",
    "8.2 A",
  ]);
});

test("a charger that accepts no watts gets amperes, by the phases of its vehicle", () => {
  const charger = { takesWatts: false };
  expect(said(W(7400), charger)).toBe("10.7 A: 7400 W asked, takes amperes");
  expect(said(W(3680), charger, { phases: 1 })).toBe("16 A: 3680 W asked, takes amperes");
  expect(said(W(30_000), charger)).toBe("32 A: 30000 W asked, takes amperes: 43.4 A asked, charger maximum");
  expect(said(W(2000), charger)).toBe("pause: 2000 W asked, takes amperes: 2.8 A asked, charger minimum");
  expect([said(W(0), charger), said(W(-5000), charger)]).toEqual([
    "pause: 0 W asked, zero",
    "pause: -5000 W asked, cannot discharge",
  ]);
});

test("a current is a multiple of the charger's step, never above the asked level", () => {
  const charger = { currentStep: amperes(1) };
  expect([said(A(13.9), charger), said(A(6), charger)]).toEqual(["13 A", "6 A"]);
  expect(said(A(9.9), { currentStep: amperes(0.5) })).toBe("9.5 A");
});

test("charger and vehicle maxima cap, and each one that applied is named", () => {
  expect(said(A(40))).toBe("32 A: 40 A asked, charger maximum");
  expect(said(A(40), {}, { maxCurrent: amperes(20) })).toBe(
    "20 A: 40 A asked, charger maximum: 32 A asked, vehicle maximum",
  );
  expect(said(A(30), {}, { maxCurrent: amperes(20) })).toBe("20 A: 30 A asked, vehicle maximum");
  expect(said(W(150_000), { maxCurrent: null, maxPower: watts(50_000) })).toBe(
    "50000 W: 150000 W asked, charger maximum",
  );
});

test("maxima in A hold for powers and the other way round, at W = A x phases x voltage", () => {
  expect(said(W(30_000))).toBe("22080 W: 30000 W asked, charger maximum");
  expect(said(A(32), { maxPower: watts(11_000) })).toBe("15.9 A: 32 A asked, charger maximum");
  expect(said(W(20_000), {}, { phases: 1 })).toBe("7360 W: 20000 W asked, charger maximum");
  expect(said(A(32), {}, { maxPower: watts(7_400), phases: 1 })).toBe("32 A");
});

test("a vehicle never counts more phases than the charger has, and without one the charger's count", () => {
  expect(wattsPerAmpere(aCharger({ phases: 1 }), aVehicle({ phases: 3 }), null)).toBe(230);
  expect(wattsPerAmpere(aCharger(), aVehicle({ phases: 1 }), null)).toBe(230);
  expect(wattsPerAmpere(aCharger(), null, null)).toBe(690);
  expect(levelOnRecord(limit(A(40), aCharger(), null).desired)).toBe("32 A");
});

test("a charger has as many phases as it was switched to, and never more than it is wired with", () => {
  const on = (count: 1 | 3) => ({ ...A(10), phases: { count, since: instant(0), chargingSince: null } });
  expect(asSwitched(aCharger(), on(1)).phases).toBe(1);
  expect(asSwitched(aCharger({ phases: 2 }), on(3)).phases).toBe(2);
  expect(asSwitched(aCharger(), A(10)).phases).toBe(3);
});

test("a measured voltage is used within 10 % of the declared one, phases without voltage left out", () => {
  const measured = [[253], [207], [241, 241, 0], [254], [206], [0], []];
  expect(measured.map((volts) => voltageInUse(null, volts, 230))).toEqual([
    253, 207, 241, 230, 230, 230, 230,
  ]);
});

test("the voltage in use stays until it is left by more than 3 V", () => {
  const used = [232.9, 233, 233.1, 230.2, 236, 236.2, 240, 254, 230].reduce<number[]>(
    (before, volts) => [...before, voltageInUse(before.at(-1) ?? null, [volts], 230)],
    [],
  );
  expect(used).toEqual([230, 230, 233.1, 233.1, 233.1, 236.2, 240, 230, 230]);
});

test("watts and amperes are compared by the voltage in use", () => {
  expect(wattsPerAmpere(aCharger({ phases: 1 }), null, 241)).toBe(241);
  expect(wattsPerAmpere(aCharger({ phases: 1 }), null, null)).toBe(230);
  expect(said(A(32), { maxPower: watts(11_000) }, {}, 220)).toBe("16.6 A: 32 A asked, charger maximum");
});

test("a level of zero or less is pause", () => {
  expect([said(A(0)), said(W(0)), said(A(-5)), said(W(-5_000))]).toEqual([
    "pause: 0 A asked, zero",
    "pause: 0 W asked, zero",
    "pause: -5 A asked, cannot discharge",
    "pause: -5000 W asked, cannot discharge",
  ]);
});

test("below the charger's minimum it pauses, or holds the minimum and names the asked level", () => {
  expect(said(A(5.9))).toBe("pause: 5.9 A asked, charger minimum");
  expect(said(A(5.9), { belowMinimum: "hold" })).toBe("6 A: 5.9 A asked, held at minimum");
  expect(said(W(4_139))).toBe("pause: 4139 W asked, charger minimum");
  expect(said(W(4_140))).toBe("4140 W");
  expect(said(W(1_000), { belowMinimum: "hold" })).toBe("4140 W: 1000 W asked, held at minimum");
});

test("rounding never leads below the minimum", () => {
  const dc = { minCurrent: null, maxCurrent: null, minPower: watts(5_000), maxPower: watts(50_000) };
  expect(said(A(7.25), dc)).toBe("pause: 7.2 A asked, charger minimum");
  expect(said(A(7.2), { ...dc, belowMinimum: "hold" })).toBe("7.3 A: 7.2 A asked, held at minimum");
});

test("the minimum is not held where the vehicle, or the charger itself, cannot take it", () => {
  expect(said(A(3), { belowMinimum: "hold" }, { maxCurrent: amperes(5) })).toBe(
    "pause: 3 A asked, charger minimum",
  );
  expect(said(A(3), { belowMinimum: "hold", maxPower: watts(4_000) })).toBe(
    "pause: 3 A asked, charger minimum",
  );
});

test("a level below one step is pause, never zero, where no minimum is declared", () => {
  const dc = { minCurrent: null, maxCurrent: null, maxPower: watts(50_000), belowMinimum: "hold" } as const;
  expect([said(W(0.4), dc), said(W(1), dc), said(A(0.09), dc)]).toEqual([
    "pause: 0 W asked, zero",
    "1 W",
    "pause: 0 A asked, zero",
  ]);
});

test("negative power discharges only where the charger can, within its maximum and the vehicle's", () => {
  const v2g = { maxDischarge: watts(10_000) };
  expect([
    said(W(-7_000.9), v2g),
    said(W(-12_000), v2g),
    said(W(-7_000), v2g, { maxPower: watts(5_000) }),
    said(W(-0.5), v2g),
    said(A(-6), v2g),
  ]).toEqual([
    "-7000 W",
    "-10000 W: -12000 W asked, discharge maximum",
    "-5000 W: -7000 W asked, vehicle maximum",
    "pause: -0.5 W asked, zero",
    "pause: -6 A asked, cannot discharge",
  ]);
});

const declaredA = (least: number, most: number) =>
  fc.option(fc.double({ min: least, max: most, noNaN: true }).map(amperes));
const declaredW = (least: number, most: number) =>
  fc.option(fc.integer({ min: least, max: most }).map(watts));
const someCharger = fc.record({
  minCurrent: declaredA(0, 10),
  maxCurrent: declaredA(1, 63),
  minPower: declaredW(0, 6_000),
  maxPower: declaredW(100, 50_000),
  maxDischarge: declaredW(100, 50_000),
  phases: fc.integer({ min: 1, max: 3 }),
  voltage: fc.constantFrom(110, 230, 400),
  belowMinimum: fc.constantFrom("pause" as const, "hold" as const),
});
const someVehicle = fc.record({
  maxCurrent: declaredA(1, 63),
  maxPower: declaredW(100, 50_000),
  phases: fc.option(fc.integer({ min: 1, max: 3 })),
});
const someAsk = fc
  .tuple(fc.constantFrom(A, W), fc.double({ min: -100, max: 100, noNaN: true }))
  .map(([kind, level]) => kind(kind === A ? level : level * 1000));

test("for any setpoint, no maximum is exceeded, and only a pause lies below the minimum", () => {
  const CLOSE = 1 + 1e-6;
  fc.assert(
    fc.property(someAsk, someCharger, someVehicle, (asked, charger, vehicle) => {
      const { desired } = limit(asked, aCharger(charger), aVehicle(vehicle));
      if (desired.kind === "pause" || desired.kind === "release") return;
      const ratio = Math.min(charger.phases, vehicle.phases ?? 3) * charger.voltage;
      const steps = desired.kind === "current" ? desired.amperes * 10 : desired.watts;
      const inWatts = desired.kind === "current" ? desired.amperes * ratio : desired.watts;
      expect(desired.kind).toBe(asked.kind);
      expect(Math.abs(steps - Math.round(steps))).toBeLessThan(1e-6);
      const ofVehicle = Math.min((vehicle.maxCurrent ?? Infinity) * ratio, vehicle.maxPower ?? Infinity);
      const ofCharger =
        inWatts < 0
          ? (charger.maxDischarge ?? 0)
          : Math.min((charger.maxCurrent ?? Infinity) * ratio, charger.maxPower ?? Infinity);
      expect(Math.abs(inWatts)).toBeLessThanOrEqual(Math.min(ofVehicle, ofCharger) * CLOSE);
      expect(inWatts).not.toBe(0);
      const least = Math.max((charger.minCurrent ?? 0) * ratio, charger.minPower ?? 0);
      if (inWatts > 0) expect(inWatts * CLOSE).toBeGreaterThanOrEqual(least);
    }),
    { numRuns: 3_000 },
  );
});

test("for any charging setpoint, the allowed level is never higher, unless the minimum is held", () => {
  fc.assert(
    fc.property(someAsk, someCharger, (asked, charger) => {
      const { desired } = limit(asked, aCharger({ ...charger, belowMinimum: "pause" }), null);
      if (desired.kind === "current" && asked.kind === "current")
        expect(desired.amperes).toBeLessThanOrEqual(asked.amperes + 1e-6);
      if (desired.kind === "power" && asked.kind === "power" && asked.watts > 0)
        expect(desired.watts).toBeLessThanOrEqual(asked.watts + 1e-6);
    }),
  );
});
