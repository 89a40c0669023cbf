import { Duration } from "luxon";
import { z } from "zod";

import { millis, type Millis, instant, type Instant } from "../../../domain/units.ts";

/** Message for the person who has to correct the input: the value found, and the value expected. */
export interface Problem {
  readonly problem: string;
}

export const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "problem" in value;

const SHOWN = 60;
const shorten = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text);

/** Most list entries in an excerpt. */
const MOST_SHOWN = 4096;

/** JSON text of a found value with long lists cut, so that an oversized body does not cost time twice. */
export const brief = (found: unknown): string =>
  JSON.stringify(found, (_name, value: unknown) =>
    Array.isArray(value) && value.length > MOST_SHOWN ? value.slice(0, MOST_SHOWN) : value,
  ) ?? String(found);

/** A found value as JSON, at most about 60 characters. Expects a parsed value (json.ts caps its depth). */
export function shown(found: unknown): string {
  if (typeof found === "string") return JSON.stringify(shorten(found));
  // JSON.parse reads 1e999 as Infinity, and JSON.stringify would write it as null.
  if (typeof found === "number") return String(found);
  return shorten(brief(found));
}

/** `"abc" is not a timespan; expected hh:mm:ss`, or `missing; expected a timespan: hh:mm:ss`. */
export const misfit = (found: unknown, what: string, expected: string): Problem => ({
  problem:
    found === undefined || found === null
      ? `missing; expected ${what}: ${expected}`
      : `${shown(found)} is not ${what}; expected ${expected}`,
});

/** Matches most ids: nothing to normalize, nothing to reject. */
const PLAIN = /^[\x20-\x7e]{1,256}$/;
const CONTROL = /\p{Cc}/u;
/** Long runs of combining marks: normalizing them takes quadratic time. UAX #15 calls at most 30 marks in a row safe. */
const PILED = /\p{M}{31}/u;
/** Counts code points. */
const LENGTH = /^.{1,256}$/su;

/**
 * Reads an id and normalizes it to NFC. It must be well-formed Unicode of 1 to 256 characters without control
 * characters. So no two ids collide in a topic or in the store.
 */
export function readId(found: unknown): string | Problem {
  if (typeof found !== "string") return misfit(found, "an id", "a string of 1 to 256 characters");
  if (PLAIN.test(found)) return found;
  if (!found.isWellFormed()) return misfit(found, "an id", "well-formed Unicode, no lone surrogates");
  if (CONTROL.test(found)) return misfit(found, "an id", "no control characters");
  if (PILED.test(found)) return misfit(found, "an id", "at most 30 combining marks in a row");
  const normalized = found.normalize("NFC");
  return LENGTH.test(normalized) ? normalized : misfit(found, "an id", "1 to 256 characters");
}

/** Contract spelling of each field, by that spelling and by its lower case. */
export type Spelling<Name extends string> = ReadonlyMap<string, Name>;
export type Fields<Name extends string> = Readonly<Partial<Record<Name, unknown>>>;

export const spelling = <Name extends string>(names: readonly Name[]): Spelling<Name> =>
  new Map(
    names.flatMap((name): [string, Name][] => [
      [name.toLowerCase(), name],
      [name, name],
    ]),
  );

/**
 * The known fields in contract spelling. Undefined: no object. The exact spelling wins over another case;
 * null counts as absent. Unknown members such as `__proto__` are never copied.
 */
export function fieldsOf<Name extends string>(names: Spelling<Name>, raw: unknown): Fields<Name> | undefined {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return undefined;
  const fields: Partial<Record<Name, unknown>> = {};
  for (const [key, value] of Object.entries(raw)) {
    const name = value === null ? undefined : (names.get(key) ?? names.get(key.toLowerCase()));
    if (name !== undefined && (key === name || fields[name] === undefined)) fields[name] = value;
  }
  return fields;
}

/** Wraps a reader as a schema: its problem becomes the issue. */
export const by = <T>(reader: (found: unknown) => T | Problem) =>
  z
    .unknown()
    .optional()
    .transform((found, context): T => {
      const value = reader(found);
      if (!isProblem(value)) return value;
      context.addIssue({ code: "custom", message: value.problem });
      return z.NEVER;
    });

/** `by` for a field that may be absent. */
export const optionally = <T, Absent>(reader: (found: unknown) => T | Problem, absent: Absent) =>
  by((found): T | Absent | Problem => (found === undefined ? absent : reader(found)));

/** An object with field names in any case. */
export const folded = <Shape extends z.ZodRawShape>(what: string, shape: Shape) => {
  const names = spelling(Object.keys(shape));
  const object = z.object(shape, { error: ({ input }) => misfit(input, what, "a JSON object").problem });
  return z.preprocess((found) => fieldsOf(names, found) ?? found, object);
};

/** Text without further rules; absent is empty. */
export const text = z
  .string({ error: ({ input }) => misfit(input, "a text", "a JSON string").problem })
  .default("");

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
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ]([01]\d|2[0-4]):([0-5]\d)(?::([0-5]\d|60)(?:[.,](\d{1,18}))?)?(?:[Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/;

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
 * midnight, 24:00 that of the next day; `0000-00-00` is the epoch. A leap second is the first second of the next day.
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
  if (hours === "24" && Number(minutes) + Number(seconds) + Number(fraction) > 0) return NaN;
  if (seconds === "60" && at % DAY !== 0) return NaN;
  return at + fractionMillis(fraction);
}
