import { describe, expect, test } from "vitest";

import type { Reading } from "../../src/domain/reading.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import {
  chargerId,
  type Instant,
  iso,
  minutes,
  seconds,
  vehicleId,
  after,
  instant,
} from "../../src/domain/units.ts";
import { readingsOf } from "../../src/reporting/reading.ts";
import { A, aCommand } from "../support/aReading.ts";
import { at } from "../support/anEvent.ts";

const seat = { charger: chargerId("bay-01"), vehicle: vehicleId("veh-214") };
const NOW = at("12:00");

const readings = (
  telemetry: Partial<Telemetry>,
  command: Parameters<typeof readingsOf>[3] = null,
): readonly Reading[] => readingsOf(seat, { at: NOW, ...telemetry }, NOW, command);

/** `power 11040 (charger, good)` */
const said = (those: readonly Reading[]): readonly string[] =>
  those.map(({ kind, value, source, quality }) => `${kind} ${JSON.stringify(value)} (${source}, ${quality})`);

test("a message becomes one reading for each value in it", () => {
  const full: Telemetry = {
    at: at("11:59:58"),
    state: "charging",
    vehicle: "veh-214",
    powerW: 11_040,
    currentsA: [15.9, 16, 16],
    voltagesV: [229, 230, 231],
    energyWh: 123_456,
    sessionWh: 1_200,
    soc: 71,
    limitA: 16,
  };
  expect(said(readingsOf(seat, full, NOW, aCommand(A(16), at("13:00"))))).toEqual([
    "power 11040 (charger, good)",
    "energy 123456 (charger, good)",
    "current 16 (charger, good)",
    "voltage 230 (charger, good)",
    "soc 71 (vehicle, good)",
    "limit 16 (charger, good)",
    'state "charging" (charger, good)',
    'setpoint {"kind":"current","amperes":16} (command, good)',
  ]);
  expect(readings({})).toEqual([]);
  expect(readings({ currentsA: [], voltagesV: [] })).toEqual([]);
});

test("the current is that of the highest phase, and dead phases do not lower the voltage", () => {
  expect(said(readings({ currentsA: [0, 16, 0], voltagesV: [0, 230, 0] }))).toEqual([
    "current 16 (charger, good)",
    "voltage 230 (charger, good)",
  ]);
});

test("a setpoint is in force until its end, a pause or a release until the next", () => {
  expect(said(readings({}, aCommand(A(16), NOW)))).toEqual([]);
  expect(said(readings({}, aCommand({ kind: "pause" })))).toEqual([
    'setpoint {"kind":"pause"} (command, good)',
  ]);
});

/** The time and quality of a reading that the charger says it took then. */
const timeOf = (charger: Instant): string => {
  const [reading] = readings({ at: charger, powerW: 1 });
  return `${iso(reading?.at ?? instant(0)).slice(11, 19)} ${reading?.quality}`;
};

describe("when it was", () => {
  test("is the charger's own time, also for readings that it kept for hours", () => {
    expect(timeOf(at("11:59:50"))).toBe("11:59:50 good");
    expect(timeOf(at("05:00"))).toBe("05:00:00 good");
  });

  test("is never after the receipt", () => {
    expect(timeOf(after(NOW, seconds(59)))).toBe("12:00:00 good");
  });

  test("is the receipt where the charger's clock is ahead", () => {
    expect(timeOf(after(NOW, seconds(61)))).toBe("12:00:00 received");
  });

  test("is put right by as much as the charger's clock is behind", () => {
    const [reading] = readingsOf(seat, { at: at("11:54"), powerW: 1 }, NOW, null, minutes(5));
    expect([iso(reading?.at ?? instant(0)).slice(11, 19), reading?.quality]).toEqual([
      "11:59:00",
      "received",
    ]);
  });
});

test("F95: implausible values are stored and marked, non-numbers are dropped", () => {
  const absurd = { soc: 101, energyWh: -1, voltagesV: [2e12], limitA: -16, powerW: -7_000, currentsA: [-3] };
  expect(said(readings(absurd))).toEqual([
    "power -7000 (charger, good)",
    "energy -1 (charger, implausible)",
    "current -3 (charger, good)",
    "voltage 2000000000000 (charger, implausible)",
    "soc 101 (vehicle, implausible)",
    "limit -16 (charger, implausible)",
  ]);
  expect(readings({ powerW: Number.NaN, energyWh: Infinity })).toEqual([]);
});
