/** Branded numbers and strings: the only file where the word `as` builds a type. */
declare const tag: unique symbol;
type Tagged<T, Name extends string> = T & { readonly [tag]: Name };

/** Amperes per phase. */
export type Amperes = Tagged<number, "A">;
export type Watts = Tagged<number, "W">;
/** Milliseconds since the epoch, UTC. */
export type Instant = Tagged<number, "instant">;
export type Millis = Tagged<number, "ms">;
export type EventId = Tagged<string, "event">;
export type VehicleId = Tagged<string, "vehicle">;
export type ChargerId = Tagged<string, "charger">;

export const amperes = (value: number): Amperes => value as Amperes;
export const watts = (value: number): Watts => value as Watts;
export const instant = (value: number): Instant => value as Instant;
export const millis = (value: number): Millis => value as Millis;
export const seconds = (value: number): Millis => millis(value * 1000);
export const minutes = (value: number): Millis => seconds(value * 60);
export const eventId = (value: string): EventId => value as EventId;
export const vehicleId = (value: string): VehicleId => value as VehicleId;
export const chargerId = (value: string): ChargerId => value as ChargerId;

/** Half-open: `from` belongs to it, `until` does not. */
export interface Window {
  readonly from: Instant;
  readonly until: Instant;
}

/** The last one that ISO 8601 spells with four digits, which is what others read: sums stop there. */
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export const after = (at: Instant, span: Millis): Instant => instant(Math.min(at + span, LAST_INSTANT));
export const between = (from: Instant, to: Instant): Millis => millis(to - from);
export const earlier = (a: Instant, b: Instant): Instant => (a < b ? a : b);
export const later = (a: Instant, b: Instant): Instant => (a > b ? a : b);
export const holdsAt = (window: Window, now: Instant): boolean => window.from <= now && now < window.until;

const DAY_MS = 86_400_000;
const TWO = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, "0"));
/** More days than this are not spelled at a time. */
const MOST_DAYS = 16;
const spelledDays = new Map<number, string>();

/**
 * ISO 8601, UTC, with milliseconds: the one spelling of a moment outside this program. A Date would take twenty times
 * as long, and a fan-out spells a hundred thousand moments, mostly of one day.
 */
export function iso(at: Instant): string {
  const whole = Math.trunc(at);
  const day = Math.floor(whole / DAY_MS);
  const inDay = whole - day * DAY_MS;
  const second = Math.floor(inDay / 1000);
  const minute = Math.floor(second / 60);
  const time = `${TWO[Math.floor(minute / 60)]}:${TWO[minute % 60]}:${TWO[second % 60]}`;
  return `${spelledDays.get(day) ?? spelledDay(day)}${time}.${String(inDay % 1000).padStart(3, "0")}Z`;
}

/** "2026-11-21T". */
function spelledDay(day: number): string {
  const midnight = new Date(day * DAY_MS).toISOString();
  const text = midnight.slice(0, midnight.indexOf("T") + 1);
  if (spelledDays.size >= MOST_DAYS) spelledDays.clear();
  spelledDays.set(day, text);
  return text;
}

const UNIT_MS = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** `500ms`, `30s`, `10m`, `2h`, `7d` (DESIGN 6.1). Null: not a duration; a bare number has no unit and is none. */
export function parseDuration(text: string): Millis | null {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS.get(unit ?? "");
  return digits === undefined || unitMs === undefined ? null : millis(Number(digits) * unitMs);
}

/** When the event asks something of each of our vehicles. */
export type Windows = ReadonlyMap<VehicleId, readonly Window[]>;
