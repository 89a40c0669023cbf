import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { Reading } from "../../src/domain/reading.ts";
import { after, minutes, seconds, vehicleId } from "../../src/domain/units.ts";
import { mean, stepsOf, within } from "../../src/reporting/series.ts";
import { thin } from "../../src/reporting/thinning.ts";
import { A, measured, stated, told } from "../support/aReading.ts";
import { at } from "../support/anEvent.ts";

const START = at("12:00");
const later = (passed: number) => after(START, seconds(passed));

/** What is kept of these messages, one after the other. */
function kept(messages: readonly (readonly Reading[])[]): readonly Reading[] {
  const newest = new Map<Reading["kind"], Reading>();
  return messages.flatMap((message) => {
    const keep = thin((kind) => newest.get(kind), message);
    for (const reading of keep) newest.set(reading.kind, reading);
    return keep;
  });
}

const times = (readings: readonly Reading[]): readonly number[] =>
  readings.map((reading) => (reading.at - START) / 1000);

/** Which of these values are kept, told one second after the other. */
const steps = (kind: "power" | "current" | "soc" | "limit" | "energy", ...values: number[]) =>
  kept(values.map((value, index) => [measured(kind, value, later(index))])).map(({ value }) => value);

test("a steady power is stored every ten seconds, a steady voltage every minute", () => {
  const every5 = Array.from({ length: 13 }, (_, index) => later(index * 5));
  expect(times(kept(every5.map((when) => [measured("power", 11_000, when)])))).toEqual([
    0, 10, 20, 30, 40, 50, 60,
  ]);
  expect(times(kept(every5.map((when) => [measured("voltage", 230, when)])))).toEqual([0, 60]);
});

test("a step is stored at once", () => {
  expect(steps("power", 11_000, 11_050, 11_600, 0, 50)).toEqual([11_000, 11_600, 0]);
  expect(steps("current", 16, 16.4, 17, 6)).toEqual([16, 17, 6]);
  expect(steps("soc", 50, 50.5, 51, 51.2)).toEqual([50, 51]);
  expect(steps("limit", 16, 16, 15.9)).toEqual([16, 15.9]);
  expect(steps("energy", 100, 200, 300)).toEqual([100]);
});

test("a message that changes state, vehicle or setpoint is stored whole", () => {
  const message = (passed: number, ...more: readonly Reading[]) => [
    measured("energy", 100 + passed, later(passed)),
    ...more,
  ];
  expect(
    times(kept([message(0, stated("charging", later(0))), message(3, stated("paused", later(3)))])),
  ).toEqual([0, 0, 3, 3]);
  expect(
    times(kept([message(0, stated("charging", later(0))), message(3, stated("charging", later(3)))])),
  ).toEqual([0, 0]);
  const moved = measured("energy", 103, later(3), { vehicle: vehicleId("veh-9") });
  expect(times(kept([message(0), [moved]]))).toEqual([0, 3]);
  const setpoints = [
    told(A(16), later(0), at("13:00")),
    told(A(16), later(1), at("13:00")),
    told(A(16), later(2), at("14:00")),
  ];
  expect(times(kept(setpoints.map((setpoint) => [setpoint])))).toEqual([0, 2]);
});

test("a repeated message is stored once", () => {
  const message = [stated("paused", later(0)), measured("power", 0, later(0))];
  expect(kept([message, message]).length).toBe(2);
});

test("buffered readings are thinned too", () => {
  const late = [0, 5, 10, 15].map((passed) => [measured("power", 11_000, later(passed))]);
  expect(times(kept([[measured("power", 11_000, later(600))], ...late]))).toEqual([600, 0, 10]);
});

test("thinned power has the same mean as all of it, to within 5 % or 100 W", () => {
  const span = { from: START, until: later(600) };
  const averaged = (readings: readonly Reading[]): number => {
    const power = readings.flatMap((reading) => (reading.kind === "power" ? [reading] : []));
    return mean(within(stepsOf(power, vehicleId("veh-214"), minutes(10), minutes(10)), span)) ?? NaN;
  };
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 22_000 }), { minLength: 120, maxLength: 120 }),
      (watts) => {
        const all = watts.map((value, index) => [measured("power", value, later(index * 5))]);
        const [exact, thinned] = [averaged(all.flat()), averaged(kept(all))];
        expect(Math.abs(thinned - exact)).toBeLessThanOrEqual(Math.max(100, 0.06 * exact));
      },
    ),
  );
});
