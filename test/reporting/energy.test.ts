import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { runToEnd } from "../../src/platform/cooperative.ts";
import type { Measured, Reading } from "../../src/domain/reading.ts";
import {
  after,
  chargerId,
  instant,
  millis,
  minutes,
  seconds,
  vehicleId,
  type Window,
} from "../../src/domain/units.ts";
import {
  energyRecord,
  type EnergyRecord,
  estimatedEnergy,
  measuredEnergy,
} from "../../src/reporting/energy.ts";
import { inOrder, stepsOf } from "../../src/reporting/series.ts";
import { charging, from, measured } from "../support/aReading.ts";
import { at } from "../support/anEvent.ts";

const GAP = minutes(5);
const BUS = vehicleId("veh-214");

const record = (readings: readonly Reading[], vehicle = BUS): EnergyRecord =>
  runToEnd(
    energyRecord(
      inOrder(readings.filter((reading): reading is Measured => reading.kind === "energy")),
      vehicle,
      () => 22_080,
      GAP,
    ),
  );

/** `5500 Wh OK`, and why not better. */
function used(readings: readonly Reading[], window: Window, vehicle = BUS): string {
  const { value, quality, causes } = measuredEnergy(record(readings, vehicle), window, GAP);
  return [`${value === null ? "nothing" : `${Math.round(value * 10) / 10} Wh`} ${quality}`, ...causes].join(
    "; ",
  );
}

const register = (value: number, when: string, changes: Partial<Measured> = {}): Measured =>
  measured("energy", value, at(when), changes);

test("energy in a window is the meter's own difference", () => {
  const readings = charging(from("11:50", "13:10"), 11_000);
  expect(used(readings, from("12:00", "13:00"))).toBe("11000 Wh OK");
  expect(used(readings, from("12:15", "12:30"))).toBe("2750 Wh OK");
});

test("energy is not interpolated: it counts in the interval of the next reading", () => {
  const readings = [register(1_000, "11:58"), register(1_300, "12:02"), register(1_600, "12:06")];
  expect(used(readings, from("12:00", "12:05"))).toBe("300 Wh OK; readings too far apart for this interval");
  expect(used(readings, from("12:05", "12:10"))).toBe("300 Wh OK; readings too far apart for this interval");
});

test("energy of an interval that is short beside the interval of its readings carries a note", () => {
  // 3 Wh each second, read every 10 s.
  const readings = Array.from({ length: 360 }, (_, index) =>
    measured("energy", 1000 + 30 * index, instant(at("12:00") + 10_000 * index)),
  );
  const cut = { from: at("12:10:03"), until: at("12:11:09") };
  expect(used(readings, { from: at("12:10:03"), until: instant(at("12:11:01")) })).toBe("180 Wh OK");
  expect(used(readings, cut)).toBe("180 Wh OK");
  expect(used(readings, { from: at("12:10:01"), until: at("12:10:49") })).toBe(
    "120 Wh OK; readings too far apart for this interval",
  );
  expect(used(readings, { from: at("12:10:09"), until: at("12:10:51") })).toBe(
    "150 Wh OK; readings too far apart for this interval",
  );
  expect(used(readings, { from: at("12:10:01"), until: at("12:20:09") })).toBe("1800 Wh OK");
});

describe("a silence", () => {
  test("within the window loses no energy: the meter went on counting", () => {
    const readings = [
      ...charging(from("11:55", "12:10"), 11_000),
      ...charging(from("12:40", "13:05"), 11_000, { register: 108_250 }),
    ];
    expect(used(readings, from("12:00", "13:00"))).toBe("11000 Wh OK");
  });

  test("over an edge belongs to neither side, and is flagged on both", () => {
    const readings = [
      ...charging(from("11:30", "11:50"), 11_000),
      ...charging(from("12:10", "13:00"), 11_000, { register: 107_333 }),
    ];
    expect(used(readings, from("11:30", "12:00"))).toBe("3666.7 Wh MISSING; gap in the readings");
    expect(used(readings, from("12:00", "13:00"))).toBe("9166.7 Wh MISSING; gap in the readings");
  });

  test("over an edge in which the meter stood still is none", () => {
    const readings = [...charging(from("11:30", "11:50"), 0), ...charging(from("12:10", "13:00"), 0)];
    expect(used(readings, from("12:00", "13:00"))).toBe("0 Wh OK");
  });

  test("longer than the window leaves no energy to report", () => {
    const readings = [register(1_000, "11:50"), register(5_000, "12:50")];
    expect(used(readings, from("12:00", "12:15"))).toBe("nothing MISSING; gap in the readings");
    expect(used(readings, from("11:55", "12:50"))).toBe("nothing MISSING; gap in the readings");
    expect(used([register(1_000, "11:58"), register(1_300, "12:02")], from("12:00", "12:01"))).toBe(
      "nothing MISSING; gap in the readings",
    );
    expect(used([register(1_000, "11:50"), register(1_000, "12:50")], from("12:00", "12:15"))).toBe(
      "0 Wh OK",
    );
  });

  test("before the first reading or after the last is a gap", () => {
    const readings = charging(from("12:20", "12:40"), 11_000);
    expect(used(readings, from("12:00", "13:00"))).toBe("3666.7 Wh MISSING; gap in the readings");
    expect(used(readings, from("12:17", "12:45"))).toBe("3666.7 Wh OK");
    expect(used([], from("12:00", "13:00"))).toBe("nothing MISSING; no readings");
  });
});

describe("a register that cannot be believed", () => {
  const before = charging(from("11:55", "12:30"), 11_000);

  test("costs what lies between the two readings, never a negative energy", () => {
    const readings = [
      ...before,
      ...charging({ from: at("12:30:10"), until: at("13:05") }, 11_000, { register: 0 }),
    ];
    expect(used(readings, from("12:00", "13:00"))).toBe("10969.4 Wh BAD; meter register cannot be believed");
    expect(used(readings, from("12:35", "12:45"))).toBe("1833.3 Wh OK");
  });

  test("loses no energy over a stray reading, which gets a note", () => {
    const readings = [
      ...before,
      register(0, "12:30:05"),
      ...charging({ from: at("12:30:10"), until: at("13:05") }, 11_000, { register: 106_447 }),
    ];
    expect(used(readings, from("12:00", "13:00"))).toBe("10999.8 Wh OK; implausible readings");
  });

  test("is no fault of a vehicle that came later", () => {
    const readings = [
      register(5_001, "12:10", { vehicle: null }),
      register(3, "12:11", { vehicle: null }),
      register(33, "12:12"),
      register(9_999, "12:13", { vehicle: null }),
    ];
    expect(used(readings, from("12:11", "12:12"))).toBe("30 Wh OK");
    expect(used(readings, from("12:12", "12:13"))).toBe("nothing MISSING; meter register cannot be believed");
  });

  test("without a believable reading has no energy to report", () => {
    expect(used([register(5_001, "12:10"), register(3, "12:20")], from("12:08", "12:22"))).toBe(
      "nothing MISSING; meter register cannot be believed",
    );
  });
});

describe("a vehicle that shares its charger", () => {
  const other = vehicleId("veh-9");

  test("gets the energy that flowed while it was on it", () => {
    const readings = [
      ...charging(from("12:00", "12:20"), 11_000, { vehicle: BUS }),
      ...charging({ from: at("12:20:10"), until: at("12:40") }, 22_000, {
        vehicle: other,
        register: 103_700,
      }),
      ...charging({ from: at("12:40:10"), until: at("13:00") }, 11_000, { vehicle: BUS, register: 111_030 }),
    ];
    expect(used(readings, from("12:00", "13:00"))).toBe("7336.1 Wh MISSING; gap in the readings");
    expect(used(readings, from("12:00", "13:00"), other)).toBe("7330 Wh MISSING; gap in the readings");
  });

  test("gets the energy since it was plugged in", () => {
    const readings = [
      register(1_000, "12:00", { vehicle: null }),
      register(1_030, "12:01"),
      register(1_060, "12:02"),
    ];
    expect(used(readings, from("12:00", "12:02"))).toBe("60 Wh OK");
  });

  test("is not booked the energy of a silence in which it took over", () => {
    const readings = [
      register(1_000, "12:00", { vehicle: other }),
      register(5_000, "12:30"),
      register(5_030, "12:31"),
    ];
    expect(used(readings, from("12:00", "12:31"))).toBe("30 Wh MISSING; gap in the readings");
  });

  test("gets the energy of each charger that it was on", () => {
    const readings = [
      ...charging(from("12:00", "12:30"), 11_000),
      ...charging({ from: at("12:30:10"), until: at("13:00") }, 22_000, {
        charger: chargerId("bay-02"),
        register: 7,
      }),
    ];
    expect(used(readings, from("12:00", "13:00"))).toBe("16438.9 Wh OK");
  });
});

/** The same where the partner asked for an estimate. */
function estimated(readings: readonly Reading[], window: Window): string {
  const power = readings.filter((reading): reading is Measured => reading.kind === "power");
  const steps = stepsOf(power, BUS, millis(Infinity), GAP);
  const { value, quality, causes } = estimatedEnergy(record(readings), steps, window, GAP);
  return [`${value === null ? "nothing" : `${Math.round(value * 10) / 10} Wh`} ${quality}`, ...causes].join(
    "; ",
  );
}

describe("estimated energy", () => {
  test("a silence over an edge is split by time", () => {
    const readings = [register(1_000, "11:50"), register(5_000, "12:10"), register(8_000, "12:25")];
    expect(estimated(readings, from("12:00", "12:25"))).toBe("5000 Wh ESTIMATED");
  });

  test("energy without a register is power times time, also over gaps", () => {
    const readings = [
      measured("power", 6_000, at("12:00")),
      measured("power", 12_000, at("12:30")),
      measured("power", 0, at("12:59")),
    ];
    expect(estimated(readings, from("12:00", "13:00"))).toBe("8800 Wh ESTIMATED");
  });

  test("energy without any measurement stays missing", () => {
    expect(estimated([], from("12:00", "13:00"))).toBe("nothing MISSING; no readings");
    expect(estimated([measured("power", 6_000, at("12:00"))], from("12:00", "13:00"))).toBe(
      "500 Wh MISSING; gap in the readings",
    );
  });
});

test("the energies of adjacent windows add up to the meter's difference", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 20 })), {
        minLength: 20,
        maxLength: 80,
      }),
      fc.array(fc.integer({ min: 1, max: 15 }), { minLength: 1, maxLength: 20 }),
      (steps, lengths) => {
        let [when, value] = [at("11:59"), 1_000.5];
        const readings = [register(value, "11:59")];
        for (const [passed, counted] of steps) {
          when = after(when, seconds(passed));
          value += Math.min(counted, passed);
          readings.push(measured("energy", value, when));
        }
        const energy = record(readings);
        const start = at("12:00");
        let edge = start;
        let sum = 0;
        for (const length of lengths) {
          const until = after(edge, minutes(length));
          sum += measuredEnergy(energy, { from: edge, until }, GAP).value ?? 0;
          edge = until;
        }
        const reading = (moment: number): number =>
          readings.findLast((each) => each.at <= moment)?.value ?? NaN;
        const all = reading(Math.min(edge, when)) - reading(instant(start));
        expect(sum).toBeCloseTo(all, 6);
        expect(measuredEnergy(energy, { from: start, until: edge }, GAP).value ?? 0).toBeCloseTo(all, 6);
      },
    ),
  );
});

test("a register that jumps with each reading of weeks is still read", () => {
  const first = register(0, "12:00");
  const readings = Array.from({ length: 130_001 }, (_, index) => ({
    ...first,
    value: index * 1e7,
    at: after(first.at, seconds(index)),
  }));
  const { faults } = runToEnd(energyRecord(readings, BUS, () => 22_080, GAP));
  expect(faults).toHaveLength(130_000);
});
