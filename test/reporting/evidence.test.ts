import { expect, test } from "vitest";

import { runToEnd } from "../../src/platform/cooperative.ts";
import type { Reading } from "../../src/domain/reading.ts";
import { after, iso, minutes, type Window } from "../../src/domain/units.ts";
import { type Baseline, baselineOf, comparableDays, evidenceOf } from "../../src/reporting/evidence.ts";
import { A, aSubject, charging, fillContext, from, told, utc } from "../support/aReading.ts";

const DAY = 24 * 60;
const back =
  (days: number) =>
  (window: Window): Window => ({
    from: after(window.from, minutes(-days * DAY)),
    until: after(window.until, minutes(-days * DAY)),
  });

/** Saturday 2026-11-21, and the Friday before. */
const SATURDAY = from("12:00", "13:00");
const FRIDAY = back(1)(SATURDAY);

/** The last six days that a window is compared with. */
const days = (window: Window): readonly string[] =>
  comparableDays(window, utc)
    .slice(0, 6)
    .map(({ from: start }) => iso(start).slice(5, 10));

test("comparable are working days for a working day, and days of a weekend for a day of a weekend", () => {
  expect(days(SATURDAY)).toEqual(["11-15", "11-14", "11-08", "11-07", "11-01", "10-31"]);
  expect(days(FRIDAY)).toEqual(["11-19", "11-18", "11-17", "11-16", "11-13", "11-12"]);
});

test("a window of more than a day is never compared with itself, one of months with nothing", () => {
  const long = { from: SATURDAY.from, until: after(SATURDAY.from, minutes(3 * DAY)) };
  expect(comparableDays(long, utc)[0]).toEqual(back(6)(long));
  expect(comparableDays({ ...long, until: after(SATURDAY.from, minutes(60 * DAY)) }, utc)).toEqual([]);
});

function baseline(readings: readonly Reading[], baselineDays = 10): Baseline {
  const context = fillContext({ baselineDays });
  return runToEnd(baselineOf(evidenceOf(aSubject(readings), context), FRIDAY, utc, context.settings));
}

/** Working days before Friday, and what was used on each, kW for the hour. */
const used = (...kilowatts: readonly number[]): readonly Reading[] =>
  kilowatts.flatMap((power, index) =>
    charging(back([1, 2, 3, 4, 7, 8, 9][index] ?? 0)(FRIDAY), power * 1000, {
      every: 60,
      register: 1_000_000 - index * 50_000,
    }),
  );

test("the baseline is the mean of the last comparable days, and gives their number", () => {
  expect(baseline(used(8, 10, 12))).toMatchObject({ days: 3, quality: "OK" });
  expect(baseline(used(8, 10, 12)).value).toBeCloseTo(10_000);
  expect(baseline(used(8, 10, 12, 99), 2).value).toBeCloseTo(9_000);
});

test("days on which the vehicle was held back do not count, nor days with gaps", () => {
  const yesterday = back(1)(FRIDAY);
  expect(baseline([...used(8, 10, 12), told(A(6), yesterday.from, yesterday.until)]).value).toBeCloseTo(
    11_000,
  );
  expect(baseline([...used(8, 10, 12), told({ kind: "release" }, yesterday.from)]).value).toBeCloseTo(10_000);
  const gap = used(8, 10, 12).filter(
    ({ at }) => at < after(yesterday.from, minutes(30)) || at > yesterday.until,
  );
  expect(baseline(gap).days).toBe(2);
});

test("without comparable days there is no baseline", () => {
  expect(baseline([])).toEqual({ value: null, quality: "MISSING", causes: ["no comparable days"], days: 0 });
});
