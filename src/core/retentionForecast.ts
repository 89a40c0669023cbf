import type { Retention } from "./retention.ts";
import { capsOf, formatBytes } from "./retentionCaps.ts";
import { type Millis, minutes } from "./units.ts";

const DAY = minutes(24 * 60);
/** Assumed: one message of each charger in ten seconds. */
const MESSAGES_A_DAY = 8640;
/** After eight days one message of each minute is left. */
const FULL_DAYS = 8;
const THINNED = 6;
/** Assumed: each of so many events a day asks something of each charger. */
const EVENTS_A_DAY = 20;
/** Rows of one event for one charger: decisions, sends, acknowledgements and verdicts of its start and its end. */
const ROWS_OF_EVENT = 8;
/** An event with no target, and one more target. */
const EVENT_BYTES = 1500;
const TARGET_BYTES = 45;

export interface ForecastSite {
  readonly chargers: number;
  readonly keepReadings: Millis;
  readonly reportsPerHour: number;
}

/** How long each kind of stored things lasts at this very site, one line each. */
export function retentionForecast(
  retention: Retention,
  { chargers, keepReadings, reportsPerHour }: ForecastSite,
): readonly string[] {
  const caps = capsOf(retention);
  const [rows, size] = [EVENTS_A_DAY * ROWS_OF_EVENT * chargers, EVENT_BYTES + TARGET_BYTES * chargers];
  const eventDays = Math.min(caps.events / size, retention.maxEvents) / EVENTS_A_DAY;
  return [
    `up to ${formatBytes(retention.bytes)} are kept on disk (retention.bytes):`,
    `- readings: ${lasts(readingDays(caps.readings, chargers), keepReadings)} at ${chargers} chargers every 10 s`,
    `- record: ${lasts(caps.record / rows, retention.audit)} at ${EVENTS_A_DAY} events a day for all of them`,
    `- ended events: ${lasts(eventDays, retention.events)} at ${EVENTS_A_DAY} events a day for all of them`,
    `- reports: at most ${reportsPerHour} requests an hour; more reports than that wait`,
  ];
}

/** Days of readings that fit, thinned after eight of them. */
function readingDays(rows: number, chargers: number): number {
  const days = rows / (MESSAGES_A_DAY * chargers);
  return days <= FULL_DAYS ? days : FULL_DAYS + (days - FULL_DAYS) * THINNED;
}

/** The configured age, or less where the room is not enough for it. */
function lasts(days: number, age: Millis): string {
  const wanted = `${Math.round(age / DAY)} days`;
  if (days * DAY >= age) return wanted;
  const found = days < 2 ? `${Math.round(days * 24)} hours` : `${Math.floor(days)} days`;
  return `about ${found} instead of ${wanted}`;
}
