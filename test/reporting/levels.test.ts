import { expect, test } from "vitest";
import type { Desired } from "../../src/domain/setpoint.ts";
import { evidenceOf } from "../../src/reporting/evidence.ts";
import { forecastIn, levelsIn, setpointIn } from "../../src/reporting/payload.ts";
import { amperes, chargerId, instant, vehicleId, watts } from "../../src/domain/units.ts";
import { A, aSubject, fillContext, from } from "../support/aReading.ts";

const W = (level: number): Desired => ({ kind: "power", watts: watts(level) });

function levels(
  desired: Desired,
  unit: "A" | "W",
  charger = "bay-01",
  vehicle = "veh-214",
): readonly number[] {
  const planned = [{ ...from("12:00", "13:00"), value: desired, charger: chargerId(charger) }];
  const subject = aSubject([], { planned, vehicle: vehicleId(vehicle) });
  const context = fillContext();
  return levelsIn(evidenceOf(subject, context), from("12:15", "12:30"), unit, context).map(
    ({ value }) => value,
  );
}

test("levels are converted to the event's unit with the charger's phases and voltage", () => {
  expect([levels(A(16), "A"), levels(A(16), "W")]).toEqual([[16], [11_040]]);
  expect([levels(W(11_040), "A"), levels(W(11_040), "W")]).toEqual([[16], [11_040]]);
  expect(levels(A(16), "W", "bay-01", "veh-unknown")).toEqual([11_040]);
});

test("a charger switched to one phase counts with one phase", () => {
  const phases = { count: 1, since: instant(0), chargingSince: null } as const;
  expect(levels({ kind: "current", amperes: amperes(10), phases }, "W")).toEqual([2_300]);
});

test("a pause is a level of zero, a release is no level", () => {
  expect([levels({ kind: "pause" }, "A"), levels({ kind: "release" }, "A")]).toEqual([[0], []]);
});

test("levels of an unknown charger are not converted", () => {
  expect([levels(A(16), "W", "bay-77"), levels(W(11_040), "A", "bay-77")]).toEqual([[], []]);
  expect([levels(A(16), "A", "bay-77"), levels(W(11_040), "W", "bay-77")]).toEqual([[16], [11_040]]);
});

const STEPS = [
  { ...from("12:00", "12:30"), value: 10_000 },
  { ...from("12:30", "12:45"), value: 4_000 },
];

test("a setpoint in watts is reported in kW", () => {
  expect(setpointIn(STEPS, "direct", "W").value).toBe(4);
  expect(setpointIn(STEPS, "mean", "W").value).toBe(8);
  expect(setpointIn(STEPS, "peak", "A").value).toBe(10_000);
  expect(setpointIn([], "direct", "A")).toEqual({ value: null, quality: "MISSING", causes: ["no setpoint"] });
});

test("a forecast is energy or mean power at the planned levels, always an estimate", () => {
  expect(forecastIn(STEPS, "usage")).toEqual({ value: 6, quality: "ESTIMATED", causes: [] });
  expect(forecastIn(STEPS, "demand")).toEqual({ value: 8, quality: "ESTIMATED", causes: [] });
  expect(forecastIn([], "usage").value).toBe(null);
});
