import { expect, test } from "vitest";

import { amperes, watts } from "../../../src/domain/units.ts";
import { amperesOf, levelOf, rateUnit } from "../../../src/ocpp/wire/profiles.ts";

const outlet = { unit: null, phases: 3, voltage: 230 };
const any = { units: null };

test("the unit is the configured one, or that of the setpoint where the charger allows it", () => {
  expect(rateUnit({ unit: "W" }, "A", { units: ["A"] })).toBe("W");
  expect(rateUnit(outlet, "W", any)).toBe("W");
  expect(rateUnit(outlet, "W", { units: ["A"] })).toBe("A");
  expect(rateUnit(outlet, null, { units: ["W", "A"] })).toBe("W");
  expect(rateUnit(outlet, null, any)).toBe("A");
});

test("a level is converted over phases and voltage, and never rounded up", () => {
  expect(levelOf({ kind: "current", amperes: amperes(13.77) }, outlet, any)).toEqual({
    value: 13.7,
    unit: "A",
  });
  expect(levelOf({ kind: "current", amperes: amperes(16) }, outlet, { units: ["W"] })).toEqual({
    value: 11040,
    unit: "W",
  });
  expect(levelOf({ kind: "power", watts: watts(7400) }, { ...outlet, unit: "A" }, any)).toEqual({
    value: 10.7,
    unit: "A",
  });
  expect(levelOf({ kind: "power", watts: watts(7400) }, { ...outlet, phases: 1, unit: "A" }, any)).toEqual({
    value: 32.1,
    unit: "A",
  });
  expect(levelOf({ kind: "power", watts: watts(7400) }, outlet, any)).toEqual({ value: 7400, unit: "W" });
});

test("a pause is a limit of 0; a release and a level below zero are no limits", () => {
  expect(levelOf({ kind: "pause" }, outlet, { units: ["W"] })).toEqual({ value: 0, unit: "W" });
  expect(levelOf({ kind: "release" }, outlet, any)).toBeNull();
  expect(levelOf({ kind: "current", amperes: amperes(-6) }, outlet, any)).toBeNull();
  expect(levelOf({ kind: "power", watts: watts(-6) }, outlet, any)).toBeNull();
});

test("a limit is shown in A per phase", () => {
  expect(amperesOf({ value: 6900, unit: "W" }, outlet)).toBe(10);
  expect(amperesOf({ value: 6, unit: "A" }, outlet)).toBe(6);
});
