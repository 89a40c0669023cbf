import { expect, test } from "vitest";

import type { Measured, Reading, Stated } from "../../src/domain/reading.ts";
import { after, instant, seconds, vehicleId } from "../../src/domain/units.ts";
import { carryForward } from "../../src/reporting/thinning.ts";
import { measured, stated } from "../support/aReading.ts";
import { at } from "../support/anEvent.ts";

const START = at("12:00");
const NOW = after(START, seconds(100));
const VEHICLE = vehicleId("veh-214");

/** What is said again 100 s later, of words of which nothing else was kept. */
const again = (
  words: readonly (Measured | Stated)[],
  kept: readonly Reading[] = [],
  changes: Partial<Parameters<typeof carryForward>[0]> = {},
): readonly string[] => {
  const held = carryForward(
    {
      lastReported: words,
      kept: (kind) => kept.find((one) => one.kind === kind),
      vehicle: VEHICLE,
      hasFlowed: false,
      ...changes,
    },
    NOW,
    seconds(100),
  );
  return held.map(({ kind, value, at: when }) => `${(when - START) / 1000} ${kind} ${JSON.stringify(value)}`);
};

test("a last value is repeated once its kind has had no stored reading for long enough", () => {
  const soc = measured("soc", 50, START);
  expect(again([soc])).toEqual(["100 soc 50"]);
  expect(again([soc], [soc])).toEqual(["100 soc 50"]);
  expect(again([soc], [measured("soc", 50, after(START, seconds(1)))])).toEqual([]);
});

test("readings stored before the clock moved back do not delay the repetition", () => {
  const soc = measured("soc", 50, START);
  expect(again([soc], [measured("soc", 50, after(NOW, seconds(3600)))])).toEqual(["100 soc 50"]);
});

test("a last value is repeated only for its own vehicle", () => {
  const soc = measured("soc", 50, START);
  expect(again([soc], [], { vehicle: null })).toEqual([]);
  expect(again([{ ...soc, vehicle: null }], [], { vehicle: null })).toEqual(["100 soc 50"]);
});

test("a value late by the charger's clock is repeated with the same lag", () => {
  const late = measured("soc", 50, START, { receivedAt: instant(START + 5000) });
  expect(again([late])).toEqual(["95 soc 50"]);
});

test("a value buffered for minutes is not repeated: it may have changed since", () => {
  const kept = measured("soc", 50, instant(START - 60_001), { receivedAt: START });
  expect(again([kept])).toEqual([]);
});

test.each<readonly [string, readonly (Measured | Stated)[], boolean]>([
  ["while nothing flows", [measured("power", 99, START)], true],
  ["not while it charges", [measured("power", 100, START)], false],
  ["not while it feeds back", [measured("power", -4000, START)], false],
  ["while it says that it is paused", [stated("paused", START)], true],
  ["not while it says that it charges", [stated("charging", START)], false],
  ["not while nobody can say", [], false],
])("a register holds %s", (_when, words, holds) => {
  const register = measured("energy", 1000, START);
  expect(again([register, ...words]).includes("100 energy 1000")).toBe(holds);
});

test("a register is not repeated if power has flowed since its last reading", () => {
  const words = [measured("energy", 1000, START), measured("power", 0, START)];
  expect(again(words)).toEqual(["100 energy 1000", "100 power 0"]);
  expect(again(words, [], { hasFlowed: true })).toEqual(["100 power 0"]);
});
