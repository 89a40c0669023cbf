import { instant, type Instant } from "../../core/units.ts";
import { misfit, type Problem } from "./problem.ts";
import { fractionMillis } from "./timespan.ts";

const STAMP =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d|60)(?:[.,](\d{1,18}))?)?(?:[Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/;

/** OpenADR 3.0.1 spells "no moment" with a month and a day that do not exist. */
const NO_DATE = "0000-00-00";
const YEAR_2000 = Date.UTC(2000, 0, 1);
const DAY = 86_400_000;

/** The start of an event: "now" where it lies before the year 2000 (openadr3 5), else as `readMoment`. */
export function readTimestamp(found: unknown): Instant | "now" | Problem {
  const at = readMoment(found);
  return typeof at === "number" && at < YEAR_2000 ? "now" : at;
}

/**
 * ISO 8601 with any offset, UTC where none is given; fractions to 18 digits, cut to ms; a date alone is its
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
  // Not Date.UTC and not Date.parse: the first takes year 12 for 1912, the second February 30 for March 2.
  const midnight = new Date(0).setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (new Date(midnight).getUTCDate() !== Number(day) || Number(month) === 0 || Number(month) > 12)
    return NaN;
  const ahead = (Number(match[9] ?? "0") * 60 + Number(match[10] ?? "0")) * (sign === "-" ? -1 : 1);
  const minute = midnight + (Number(hours) * 60 + Number(minutes) - ahead) * 60_000;
  const at = minute + Number(seconds) * 1000;
  if (seconds === "60" && at % DAY !== 0) return NaN;
  return at + fractionMillis(fraction);
}
