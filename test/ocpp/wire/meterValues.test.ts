import { expect, test } from "vitest";

import { instant } from "../../../src/domain/units.ts";
import { judged, type Judged, meterValues, readingsOf, timeOf } from "../../../src/ocpp/wire/meterValues.ts";

const AT = "2026-11-23T12:00:00Z";

const phase = (value: string, name: string) => ({ value, measurand: "Power.Active.Import", phase: name });
const sample = (timestamp: string, value: string) => ({ timestamp, sampledValue: [{ value }] });

const readings = (...sampledValue: readonly object[]) =>
  readingsOf(meterValues.parse([{ timestamp: AT, sampledValue }])).readings;

test("a value without a measurand is the energy register in Wh", () => {
  expect(readings({ value: "1234" })).toEqual({ energyWh: 1234 });
});

test("kW, kWh, mA and the multiplier of 2.0.1 become W, Wh and A", () => {
  expect(
    readings(
      { value: "11.04", measurand: "Power.Active.Import", unit: "kW" },
      { value: "1.5", measurand: "Energy.Active.Import.Register", unit: "kWh" },
      { value: "16000", measurand: "Current.Import", unit: "mA" },
    ),
  ).toEqual({ powerW: 11040, energyWh: 1500, currentsA: [16] });
  expect(
    readings({ value: 11.04, measurand: "Power.Active.Import", unitOfMeasure: { unit: "W", multiplier: 3 } }),
  ).toEqual({ powerW: 11040 });
});

test("phases become lists, in any order and spelling; the neutral conductor is none of them", () => {
  expect(
    readings(
      { value: "3", measurand: "Current.Import", phase: "L3" },
      { value: "1", measurand: "Current.Import", phase: "L1-N" },
      { value: "9", measurand: "Current.Import", phase: "N" },
      { value: "400", measurand: "Voltage", phase: "L1-L2" },
    ),
  ).toEqual({ currentsA: [1, 0, 3], voltagesV: [400 / Math.sqrt(3)] });
});

test("powers of the phases are summed where the total is missing, and fed back power is negative", () => {
  expect(readings(phase("100", "L1"), phase("200", "L2"))).toEqual({ powerW: 300 });
  expect(readings(phase("100", "L1"), { value: "5", measurand: "Power.Active.Import" })).toEqual({
    powerW: 5,
  });
  expect(readings({ value: "5", measurand: "Power.Active.Export" })).toEqual({ powerW: -5 });
});

test("the limit that the charger offers is read in A and in W", () => {
  expect(
    readings(
      { value: "16", measurand: "Current.Offered" },
      { value: "11040", measurand: "Power.Offered" },
      { value: "71", measurand: "SoC", unit: "Percent", location: "EV" },
    ),
  ).toEqual({ limitA: 16, limitW: 11040, soc: 71 });
});

test("a charger that measures its power on the grid side only is measured there, and its register is not mixed", () => {
  // Easee reports its power so, and its register at the outlet.
  const inlet = { measurand: "Power.Active.Import", location: "Inlet" };
  expect(readings({ value: "6407.000", unit: "W", ...inlet })).toEqual({ powerW: 6407 });
  expect(
    readings(
      { value: "1", measurand: "Current.Import", phase: "L1", location: "Inlet" },
      { value: "12", ...inlet },
      { value: "5", measurand: "Power.Active.Import", location: "Outlet" },
      { value: "30", measurand: "Energy.Active.Import.Register", location: "Inlet" },
      { value: "9", ...inlet },
    ),
  ).toEqual({ currentsA: [1], powerW: 5 });
});

test("signed values, unknown units, other places and the begin of a transaction are not readings of now", () => {
  expect(
    readings(
      { value: "AB12", format: "SignedData" },
      { value: "7", measurand: "Power.Active.Import", unit: "VA" },
      { value: "8", measurand: "Power.Active.Import", location: "Body" },
      { value: "9", measurand: "Power.Active.Import", context: "Transaction.Begin" },
      { value: "n/a", measurand: "Voltage" },
    ),
  ).toEqual({});
});

test("a comma and a unit in the value are understood", () => {
  expect(readings({ value: " 16,5 A", measurand: "Current.Import" })).toEqual({ currentsA: [16.5] });
});

test("the newest of several times wins, whatever their order", () => {
  const all = meterValues.parse([
    sample("2026-11-23T12:00:02Z", "3"),
    sample("2026-11-23T12:00:00Z", "1"),
    sample("nonsense", "0"),
  ]);
  expect(readingsOf(all)).toEqual({ readings: { energyWh: 3 }, at: Date.parse("2026-11-23T12:00:02Z") });
});

test("a time without a zone is UTC, and one that cannot be read is none", () => {
  expect(timeOf("2026-11-23T12:00:00")).toBe(Date.parse(AT));
  expect(timeOf("2026-11-23T13:00:00+01:00")).toBe(Date.parse(AT));
  expect([timeOf("soon"), timeOf(7), timeOf("1".repeat(50))]).toEqual([null, null, null]);
});

test("meter values that are no list are none", () => {
  expect(readingsOf(meterValues.parse("nothing"))).toEqual({ readings: {}, at: null });
});

test("an empty member is an absent one", () => {
  const empty = { measurand: "", unit: "", phase: "", context: "", location: "" };
  const power = { value: "7", measurand: "Power.Active.Import", unit: "kW", phase: "", location: "" };
  const parsed = meterValues.parse([{ sampledValue: [{ value: "12", ...empty }, power] }]);
  expect(readingsOf(parsed).readings).toEqual({ energyWh: 12, powerW: 7000 });
});

const sent = (at: number, receivedAt: number) => ({
  at: instant(at * 1000),
  receivedAt: instant(receivedAt * 1000),
});

test("a clock is late by meter values that lag alike, and not by those that a station kept while it was cut off", () => {
  const isLate = (...all: readonly ReturnType<typeof sent>[]) =>
    all.reduce<Judged | null>((before, next) => judged(before, next), null)?.isLate;
  expect(isLate(sent(0, 180))).toBe(false);
  expect(isLate(sent(0, 180), sent(10, 190))).toBe(true);
  expect(isLate(sent(0, 180), sent(9, 190.4))).toBe(true);
  // A sample in several messages, and one that waited for a while.
  expect(isLate(sent(0, 180), sent(0, 180.1), sent(1, 181), sent(2, 182.1))).toBe(true);
  expect(isLate(sent(0, 180), sent(10, 190), sent(10, 190.1), sent(20, 204))).toBe(true);
  // Kept ones come at once, and catch up.
  expect(isLate(sent(0, 180), sent(1, 181))).toBe(false);
  expect(isLate(sent(0, 180), sent(10, 180.2), sent(20, 180.4))).toBe(false);
  expect(isLate(sent(0, 180), sent(60, 190))).toBe(false);
  expect(isLate(sent(0, 180), sent(10, 190), sent(199, 200))).toBe(false);
});
