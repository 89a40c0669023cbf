import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instant, iso } from "../../../../src/domain/units.ts";
import { isProblem, readMoment, readTimestamp } from "../../../../src/vtn/dialects/partner/fields.ts";

test.each([
  ["2026-11-21T08:00:00Z", "2026-11-21T08:00:00.000Z"],
  ["2026-11-21t08:00:00z", "2026-11-21T08:00:00.000Z"],
  ["2026-11-21 08:00:00", "2026-11-21T08:00:00.000Z"],
  ["2026-11-21T08:00", "2026-11-21T08:00:00.000Z"],
  ["2026-11-21", "2026-11-21T00:00:00.000Z"],
  ["2026-11-21T08:00:00.1239999+00:00", "2026-11-21T08:00:00.123Z"],
  ["2026-11-21T08:00:00.123456789Z", "2026-11-21T08:00:00.123Z"],
  ["2026-11-21T08:00:00.999999999999999999Z", "2026-11-21T08:00:00.999Z"],
  ["2026-11-21T08:00:00,5Z", "2026-11-21T08:00:00.500Z"],
  ["2026-11-21T08:00:00.5+02:00", "2026-11-21T06:00:00.500Z"],
  ["2026-11-21T08:00:00-0530", "2026-11-21T13:30:00.000Z"],
  ["2026-11-21T00:30:00+01", "2026-11-20T23:30:00.000Z"],
  ["2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000Z"],
  ["2026-12-31T24:00:00.000Z", "2027-01-01T00:00:00.000Z"],
  ["2026-11-21T24:00+02:00", "2026-11-21T22:00:00.000Z"],
  ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"],
  ["0012-03-04T00:00:00Z", "0012-03-04T00:00:00.000Z"],
])("a timestamp of %s is %s, whatever the zone of this machine", (text, meant) => {
  const at = readMoment(text);
  expect(isProblem(at) ? at.problem : iso(at)).toBe(meant);
});

test.each([
  ["2026-12-31T23:59:60Z", "2027-01-01T00:00:00.000Z"],
  ["2026-12-31T15:59:60.25-08:00", "2027-01-01T00:00:00.250Z"],
])("F23 the leap second %s is the first second of the next day", (text, meant) => {
  const at = readMoment(text);
  expect(isProblem(at) ? at.problem : iso(at)).toBe(meant);
});

test.each([
  "",
  "now",
  "2026-02-29T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-00-10T00:00:00Z",
  "2026-11-31",
  "2026-11-21T24:00:00.001Z",
  "2026-11-21T24:00:01Z",
  "2026-11-21T24:01Z",
  "2026-11-21T25:00:00Z",
  "2026-11-21T08:60:00Z",
  "2026-11-21T08:00:60Z",
  "2026-11-21T08:00:00.Z",
  "2026-11-21T08:00:00.1234567890123456789Z",
  "2026-11-21T08:00:00+24:00",
  "2026-11-21T",
  "+012026-11-21T08:00:00Z",
  "1795248000000",
  1795248000000,
  null,
  undefined,
])("a timestamp of %j is refused", (found) => {
  const at = readMoment(found);
  expect(isProblem(at) && at.problem).toContain("a timestamp");
});

test.each([
  "0000-00-00",
  "0000-00-00T00:00:00Z",
  "0001-01-01T00:00:00",
  "0000-01-01",
  "1999-12-31T23:59:59Z",
])("F57 a start of %s means now", (text) => {
  expect(readTimestamp(text)).toBe("now");
});

test("a start from the year 2000 on is that moment", () => {
  expect(readTimestamp("2000-01-01T00:00:00Z")).toBe(Date.UTC(2000, 0, 1));
  expect(isProblem(readTimestamp("soon"))).toBe(true);
});

test("an early creation time is only early, and a date of zeros is the epoch", () => {
  expect(readMoment("0001-01-01T00:00:00Z")).toBe(-62_135_596_800_000);
  expect(readMoment("0000-00-00T00:00:00Z")).toBe(0);
});

test("every moment that we write is always read back as itself", () => {
  const year10000 = Date.UTC(10_000, 0, 1);
  fc.assert(
    fc.property(fc.integer({ min: -62_135_596_800_000, max: year10000 - 1 }), (ms) => {
      expect(readMoment(iso(instant(ms)))).toBe(ms);
    }),
  );
});
