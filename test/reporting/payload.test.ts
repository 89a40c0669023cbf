import { expect, test } from "vitest";

import type { Wanted } from "../../src/domain/report.ts";
import { readingTypeOf, unitsOf, wantedOf } from "../../src/reporting/payload.ts";
import { aDescriptor } from "../support/aReport.ts";

const CURRENT = { ask: { kind: "current", level: 16 } } as const;
const wanted = (payloadType: string, readingType = "DIRECT_READ", aggregate = false): Wanted =>
  wantedOf(aDescriptor({ payloadType, readingType, aggregate }), CURRENT).wanted;

test.each([
  ["USAGE", "usage", "KWH"],
  ["DEMAND", "demand", "KW"],
  ["READING", "reading", "KWH"],
  ["SETPOINT", "setpoint", "AMPS"],
  ["OPERATING_STATE", "operatingState", null],
  ["STORAGE_CHARGE_LEVEL", "chargeLevel", "PERCENT"],
  ["BASELINE", "baseline", "KWH"],
  ["DELTA_USAGE", "deltaUsage", "KWH"],
  ["DATA_QUALITY", "dataQuality", null],
  ["UP_REGULATION_AVAILABLE", null, null],
  ["constructor", null, null],
])("%s is %s, in %s", (payloadType, quantity, units) => {
  expect([wanted(payloadType).quantity, unitsOf(wanted(payloadType))]).toEqual([quantity, units]);
});

test("the partner's spelling is recognized and kept in the answer", () => {
  expect(wanted("StorageChargeLevel")).toMatchObject({
    payloadType: "StorageChargeLevel",
    quantity: "chargeLevel",
  });
  expect(wanted("usage", "directRead")).toMatchObject({ quantity: "usage", method: "direct" });
});

test("the setpoint of an event in power is reported in kW", () => {
  const { wanted: power } = wantedOf(aDescriptor({ payloadType: "SETPOINT" }), {
    ask: { kind: "power", level: 11 },
  });
  expect(unitsOf(power)).toBe("KW");
});

test("reading types are reported by their standard names", () => {
  const types = ["DIRECT_READ", "MEAN", "AVERAGE", "PEAK", "SUMMED", "ESTIMATED", "FORECAST"];
  expect(types.map((type) => readingTypeOf(wanted("USAGE", type), false))).toEqual([
    "DIRECT_READ",
    "MEAN",
    "MEAN",
    "PEAK",
    "SUMMED",
    "ESTIMATED",
    "FORECAST",
  ]);
  expect(readingTypeOf(wanted("USAGE"), true)).toBe("FORECAST");
  expect(readingTypeOf(wanted("USAGE", "DIRECT_READ", true), false)).toBe("SUMMED");
  expect(readingTypeOf(wanted("STORAGE_CHARGE_LEVEL", "DIRECT_READ", true), false)).toBe("DIRECT_READ");
});

const flags = (readingType: string) => wantedOf(aDescriptor({ readingType }), CURRENT).flags;

test("an unknown or missing reading type counts as DIRECT_READ, with one flag", () => {
  expect(flags("")).toEqual(["readingType is not given: read directly"]);
  expect(flags("SMELLED")).toEqual(['readingType "SMELLED" is not known: read directly']);
  expect(wanted("USAGE", "").method).toBe("direct");
});

test("an absurd payload type is reported under a valid name", () => {
  const long = wantedOf(aDescriptor({ payloadType: `${"x".repeat(127)}\u{1F50B}` }), CURRENT);
  expect(long.wanted.payloadType).toBe(`${"x".repeat(127)}\uFFFD`);
  expect(long.flags).toEqual([`payloadType "${"x".repeat(60)}…" is not available here`]);
  const none = wantedOf(aDescriptor({ payloadType: "" }), CURRENT);
  expect([none.wanted.payloadType, none.flags]).toEqual([
    "UNKNOWN",
    ["payloadType (none) is not available here"],
  ]);
});
