import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { MOST_WATTS, mostWatts, type Register, registerOf } from "../../src/reporting/energy.ts";
import { after, amperes, seconds, watts } from "../../src/domain/units.ts";
import { aCharger } from "../support/aCharger.ts";
import { at } from "../support/anEvent.ts";
import { charging, from, measured } from "../support/aReading.ts";

/** A register read every so many seconds, on a charger of 22 kW. */
const read = (every: number, ...values: readonly number[]): Register =>
  runToEnd(
    registerOf(
      values.map((value, index) => measured("energy", value, after(at("12:00"), seconds(index * every)))),
      22_080,
    ),
  );

const energies = ({ segments }: Register): readonly number[] => segments.map(({ wattHours }) => wattHours);
const faults = (register: Register): readonly string[] =>
  register.faults.map(({ kind, before, after: value }) => `${kind} ${before} -> ${value}`);

test("the difference of two register readings was delivered", () => {
  const register = read(10, 123_456.5, 123_486.5, 123_486.5, 123_547);
  expect(energies(register)).toEqual([30, 0, 60.5]);
  expect(register.faults).toEqual([]);
  expect(energies(read(10))).toEqual([]);
  expect(energies(read(10, 5))).toEqual([]);
});

describe("a register that cannot be believed is flagged, not booked", () => {
  test("a reset, after which it counts from zero", () => {
    const register = read(10, 123_400, 123_457, 3, 33, 63);
    expect(energies(register)).toEqual([57, 30, 30]);
    expect(faults(register)).toEqual(["reset 123457 -> 3"]);
  });

  test("a step backwards", () => {
    const register = read(10, 123_457, 120_001, 120_031, 120_061);
    expect(energies(register)).toEqual([30, 30]);
    expect(faults(register)).toEqual(["backwards 123457 -> 120001"]);
  });

  test("a jump over what the charger can deliver in the time, as when the meter is changed", () => {
    const register = read(10, 123_457, 999_991, 1_000_021, 1_000_051);
    expect(energies(register)).toEqual([30, 30]);
    expect(faults(register)).toEqual(["jump 123457 -> 999991"]);
    expect(faults(read(10, 123_457, 123_557))).toEqual(["jump 123457 -> 123557"]);
    expect(faults(read(10, 123_457, 123_517))).toEqual([]);
  });

  test("a single stray reading; the energy around it still counts", () => {
    const dropped = read(10, 123_457, 0, 123_507, 123_537);
    expect([energies(dropped), faults(dropped)]).toEqual([[50, 30], ["stray 123457 -> 0"]]);
    const leapt = read(10, 123_457, 999_999, 888_888, 123_507);
    expect([energies(leapt), faults(leapt)]).toEqual([
      [50],
      ["stray 123457 -> 999999", "stray 123457 -> 888888"],
    ]);
  });
});

test("a register that counts in whole kWh moves a kWh at a time", () => {
  expect(faults(read(10, 123_000, 123_000, 124_000))).toEqual([]);
  expect(faults(read(10, 123_400, 123_400, 123_500))).toEqual([]);
  expect(faults(read(10, 123_400, 123_400, 126_500))).toEqual(["jump 123400 -> 126500"]);
});

test("the most a charger can deliver is what it declares, in A or W", () => {
  expect(mostWatts(aCharger())).toBe(22_080);
  expect(mostWatts(aCharger({ maxPower: watts(11_000) }))).toBe(11_000);
  expect(mostWatts(aCharger({ maxCurrent: amperes(16), maxPower: watts(50_000) }))).toBe(11_040);
  expect(mostWatts(aCharger({ maxCurrent: null }))).toBe(MOST_WATTS);
});

test("for any register, no energy is negative or above the charger's capability", () => {
  const values = fc.array(fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 1e9 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(values, fc.integer({ min: 1, max: 600 }), (wattHours, every) => {
      const { segments, faults: found } = read(every, ...wattHours);
      for (const { wattHours: booked, from: start, until } of segments) {
        expect(booked).toBeGreaterThanOrEqual(0);
        expect(booked).toBeLessThanOrEqual((22_080 * 1.1 * (until - start + 2_000)) / 3_600_000 + 1_000);
      }
      expect(segments.length + found.length).toBe(Math.max(0, wattHours.length - 1));
    }),
  );
});

test("no energy of a rising register is lost", () => {
  const readings = charging(from("12:00", "13:00"), 11_000).flatMap((reading) =>
    reading.kind === "energy" ? [reading] : [],
  );
  const { segments, faults: found } = runToEnd(registerOf(readings, 22_080));
  expect(found).toEqual([]);
  expect(segments.reduce((sum, { wattHours }) => sum + wattHours, 0)).toBeCloseTo(11_000, 6);
});
