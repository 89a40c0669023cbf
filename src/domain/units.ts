/** Branded numbers and strings. Only this file builds a type with `as`. */
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
export const hours = (value: number): Millis => minutes(value * 60);
export const eventId = (value: string): EventId => value as EventId;
export const vehicleId = (value: string): VehicleId => value as VehicleId;
export const chargerId = (value: string): ChargerId => value as ChargerId;

/** Half-open period: `from` is inside, `until` is not. */
export interface Window {
  readonly from: Instant;
  readonly until: Instant;
}

/** Last instant with a four-digit year. Sums stop here, because other programs cannot parse five digits. */
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export const after = (at: Instant, span: Millis): Instant => instant(Math.min(at + span, LAST_INSTANT));
export const between = (from: Instant, to: Instant): Millis => millis(to - from);
export const earlier = (a: Instant, b: Instant): Instant => (a < b ? a : b);
export const later = (a: Instant, b: Instant): Instant => (a > b ? a : b);
export const isOpenAt = (window: Window, now: Instant): boolean => window.from <= now && now < window.until;

const DAY_MS = 86_400_000;
const TWO = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, "0"));
/** Cap on cached dates. */
const MAX_CACHED_DAYS = 16;
const isoDays = new Map<number, string>();

/**
 * ISO 8601, UTC, with milliseconds: the only format of a moment outside this program.
 * `Date` takes twenty times as long, and one event can need 100,000 moments, mostly of one day.
 */
export function iso(at: Instant): string {
  const whole = Math.trunc(at);
  const day = Math.floor(whole / DAY_MS);
  const inDay = whole - day * DAY_MS;
  const second = Math.floor(inDay / 1000);
  const minute = Math.floor(second / 60);
  const time = `${TWO[Math.floor(minute / 60)]}:${TWO[minute % 60]}:${TWO[second % 60]}`;
  return `${isoDays.get(day) ?? isoDay(day)}${time}.${String(inDay % 1000).padStart(3, "0")}Z`;
}

/** Reads a moment in ISO 8601 with a zone. NaN: it is none. */
export const fromIso = (text: string): Instant => instant(Date.parse(text));

export const isoOrNull = (at: Instant | null): string | null => (at === null ? null : iso(at));

/** "2026-11-21T". */
function isoDay(day: number): string {
  const midnight = new Date(day * DAY_MS).toISOString();
  const text = midnight.slice(0, midnight.indexOf("T") + 1);
  if (isoDays.size >= MAX_CACHED_DAYS) isoDays.clear();
  isoDays.set(day, text);
  return text;
}

const UNIT_MS = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Parses `500ms`, `30s`, `10m`, `2h`, `7d`. Null: not a duration. A number without a unit is none. */
export function parseDuration(text: string): Millis | null {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS.get(unit ?? "");
  return digits === undefined || unitMs === undefined ? null : millis(Number(digits) * unitMs);
}

/** Windows of one event by vehicle. */
export type Windows = ReadonlyMap<VehicleId, readonly Window[]>;
