import * as fc from "fast-check";
import { expect, test } from "vitest";

import { millis } from "../../../../src/domain/units.ts";
import { isProblem, readTimespan, writeTimespan } from "../../../../src/vtn/dialects/partner/fields.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test.each([
  ["00:00:00", 0],
  ["01:30:00", 1.5 * HOUR],
  ["24:00:00", DAY],
  ["100:00:01", 100 * HOUR + 1000],
  ["00:00:00.5", 500],
  ["00:00:01.1234567", 1123],
  ["00:00:01.999999999", 1999],
  ["1.02:00:00.123456789", 26 * HOUR + 123],
  ["00:00:00.999999999999999999", 999],
  ["PT0.999999999999999999S", 999],
  ["PT1.000000001S", 1000],
  ["PT1,999999999S", 1999],
  ["1.02:00:00", 26 * HOUR],
  ["0.23:59:59.9999999", DAY - 1],
  ["PT2H", 2 * HOUR],
  ["PT0S", 0],
  ["P1DT12H", 1.5 * DAY],
  ["P2W", 14 * DAY],
  ["PT1M0.25S", 60_250],
  ["P9999Y", 9999 * 365 * DAY],
])("F57 a timespan of %s is %d ms", (text, span) => {
  expect(readTimespan(text)).toBe(span);
});

test.each([
  "",
  "abc",
  "1:00:00",
  "00:60:00",
  "00:00:60",
  "00:00:00.",
  "00:00:00.1234567890123456789",
  "PT0.1234567890123456789S",
  "-00:10:00",
  "+00:10:00",
  "1.24:00:00",
  " 00:10:00",
  "00:10:00\n",
  "P",
  "PT",
  "P1",
  "-PT5M",
  "PT-5M",
  "PT5",
  "١:00:00",
  3600,
  null,
  undefined,
  {},
])("F57 a timespan of %j is refused with what would be right", (found) => {
  const span = readTimespan(found);
  expect(isProblem(span) && span.problem).toContain("hh:mm:ss, d.hh:mm:ss or an ISO 8601 duration");
});

test("a timespan beyond all calendars is as good as endless", () => {
  expect(readTimespan(`${"9".repeat(400)}:00:00`)).toBe(1e15);
  expect(readTimespan("P999999999Y")).toBe(1e15);
});

test("a timespan that we write is always read back as the same span", () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (number) => {
      const span = millis(number % 1e15);
      expect(readTimespan(writeTimespan(span))).toBe(span);
    }),
  );
});

test("milliseconds of an ISO duration are never off by one", () => {
  for (let ms = 0; ms < 1000; ms += 1) expect(readTimespan(`PT0.${String(ms).padStart(3, "0")}S`)).toBe(ms);
});

test("a timespan is written as in the contract", () => {
  expect(writeTimespan(millis(26 * HOUR + 61_000))).toBe("26:01:01");
  expect(writeTimespan(millis(1005))).toBe("00:00:01.005");
});

test("the last component of an ISO 8601 duration may have a fraction, no other", () => {
  expect(["PT1.5H", "PT0,5M", "P0.5D", "PT1H0.5M"].map((text) => readTimespan(text))).toEqual([
    5_400_000, 30_000, 43_200_000, 3_630_000,
  ]);
  for (const text of ["PT1.5H30M", "P0.5DT1H", "PT1.H", "PT.5H"])
    expect(isProblem(readTimespan(text))).toBe(true);
});
