import { Duration } from "luxon";

import { millis, type Millis, instant, type Instant } from "../../../domain/units.ts";
import { misfit, type Problem } from "./fields.ts";

const CLOCK = /^(\d{2,}):([0-5]\d):([0-5]\d)(?:\.(\d{1,18}))?$/;
const DAYS_AND_CLOCK = /^(\d+)\.([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,18}))?$/;
const N = String.raw`\d+(?:[.,]\d{1,18})?`;
const ISO = new RegExp(
  `^P(?=\\d|T\\d)(?:${N}Y)?(?:${N}M)?(?:${N}W)?(?:${N}D)?(?:T(?=\\d)(?:${N}H)?(?:${N}M)?(?:${N}S)?)?$`,
);
/** ISO 8601 lets the last component, and only that, have a fraction. */
const FRACTION_BEFORE_THE_LAST = /[.,]\d+[A-Z]./;

/** Some 31,700 years in ms: P9999Y fits, and sums with it stay exact integers. */
const LONGEST = 1e15;

/**
 * Reads a timespan in ms; finer digits are cut off. Forms: `hh:mm:ss` with any number of hours, `d.hh:mm:ss`
 * as .NET writes days, both with up to 18 fraction digits, or an ISO 8601 duration.
 */
export function readTimespan(found: unknown): Millis | Problem {
  const span = typeof found === "string" ? inMillis(found) : NaN;
  return Number.isNaN(span)
    ? misfit(found, "a timespan", "hh:mm:ss, d.hh:mm:ss or an ISO 8601 duration")
    : millis(Math.min(span, LONGEST));
}

function inMillis(text: string): number {
  const clock = CLOCK.exec(text);
  if (clock !== null) return sum("0", clock[1], clock[2], clock[3], clock[4]);
  const days = DAYS_AND_CLOCK.exec(text);
  if (days !== null) return sum(days[1], days[2], days[3], days[4], days[5]);
  // luxon counts a year as 365 days and a month as 30; it rejects numbers of more than 20 digits.
  const isDuration = ISO.test(text) && !FRACTION_BEFORE_THE_LAST.test(text);
  return isDuration ? Math.trunc(Duration.fromISO(cutToMillis(text.replace(",", "."))).toMillis()) : NaN;
}

/** Seconds with at most three fraction digits: luxon would round eighteen nines up to the next second. */
const cutToMillis = (duration: string): string => duration.replace(/(\.\d{3})\d+S$/, "$1S");

function sum(days = "0", hours = "0", minutes = "0", seconds = "0", fraction = ""): number {
  const whole = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
  return whole * 1000 + fractionMillis(fraction);
}

/** The first three digits after the point: ".5" is 500, ".1234567" is 123. */
const fractionMillis = (digits: string): number => Number(digits.padEnd(3, "0").slice(0, 3));

const two = (value: number): string => String(value).padStart(2, "0");

/** `hh:mm:ss`, hours beyond 23 where needed, `.fff` only where there are milliseconds. */
export function writeTimespan(span: Millis): string {
  const seconds = Math.floor(span / 1000);
  const fraction = span % 1000 === 0 ? "" : `.${String(span % 1000).padStart(3, "0")}`;
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}${fraction}`;
}

const STAMP =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d|60)(?:[.,](\d{1,18}))?)?(?:[Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/;

/** OpenADR 3.0.1 writes "no moment" with a month and a day that do not exist. */
const NO_DATE = "0000-00-00";
const YEAR_2000 = Date.UTC(2000, 0, 1);
const DAY = 86_400_000;

/** Reads the start of an event: "now" before the year 2000, else as `readMoment`. */
export function readTimestamp(found: unknown): Instant | "now" | Problem {
  const at = readMoment(found);
  return typeof at === "number" && at < YEAR_2000 ? "now" : at;
}

/**
 * ISO 8601 with any offset; UTC without one. Fractions of up to 18 digits are cut to ms. A date alone is its
 * midnight; `0000-00-00` is the epoch. A leap second is the first second of the next day.
 */
export function readMoment(found: unknown): Instant | Problem {
  const at = typeof found === "string" ? epochMillis(found) : NaN;
  return Number.isNaN(at) ? misfit(found, "a timestamp", "ISO 8601 like 2026-11-21T08:00:00Z") : instant(at);
}

function epochMillis(text: string): number {
  const match = STAMP.exec(text);
  if (match === null) return NaN;
  if (text.startsWith(NO_DATE)) return 0;
  const [, year, month, day, hours = "0", minutes = "0", seconds = "0", fraction = "", sign] = match;
  // Date.UTC reads year 12 as 1912, and Date.parse reads February 30 as March 2.
  const midnight = new Date(0).setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (new Date(midnight).getUTCDate() !== Number(day) || Number(month) === 0 || Number(month) > 12)
    return NaN;
  const ahead = (Number(match[9] ?? "0") * 60 + Number(match[10] ?? "0")) * (sign === "-" ? -1 : 1);
  const minute = midnight + (Number(hours) * 60 + Number(minutes) - ahead) * 60_000;
  const at = minute + Number(seconds) * 1000;
  if (seconds === "60" && at % DAY !== 0) return NaN;
  return at + fractionMillis(fraction);
}
