import { between, type Instant, instant, type Millis, seconds } from "../core/units.ts";
import { readMoment } from "./wire/timestamp.ts";

/** The header with the moment of signing, and how far that moment may be from now, in either direction. */
export interface SignedTimestamp {
  readonly header: string;
  readonly tolerance: Millis;
}

/** Unix seconds (up to 11 digits), Unix milliseconds (12 to 14 digits) or ISO 8601. Null: none of them. */
export function readSignedAt(text: string): Instant | null {
  if (/^\d{1,11}$/.test(text)) return instant(seconds(Number(text)));
  if (/^\d{12,14}$/.test(text)) return instant(Number(text));
  const at = readMoment(text);
  return typeof at === "number" ? at : null;
}

/** Whether a delivery that was signed at `at` is neither too old nor too far ahead of our clock. */
export const isFresh = (
  at: Instant,
  now: Instant,
  { oldest, earliest }: { readonly oldest: Millis; readonly earliest: Millis },
): boolean => between(at, now) <= oldest && between(now, at) <= earliest;

/** For the log: `310 s ago`, `70 s ahead of our clock`. */
export function ageInWords(at: Instant, now: Instant): string {
  const age = between(at, now);
  return `${Math.abs(Math.round(age / 1000))} s ${age > 0 ? "ago" : "ahead of our clock"}`;
}
