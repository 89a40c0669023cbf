import type { Retention } from "../domain/retention.ts";
import { type Instant, type Millis, minutes } from "../domain/units.ts";

/** The kinds of stored things that grow with the site. */
export type Retained = "readings" | "record" | "events";

/** Share of `retention.bytes` of each kind. */
const SHARES: Readonly<Record<Retained, number>> = { readings: 0.6, record: 0.3, events: 0.1 };
/** One message of a charger, with its HMAC. Measured: 114 in a full table. */
const READING_BYTES = 130;
/** One row of the record, with its indexes. */
const RECORD_ROW_BYTES = 1000;

/** How much of each kind is kept; beyond it the oldest go before their age. */
export interface RetentionCaps {
  /** Stored messages of chargers. */
  readonly readings: number;
  /** Rows of the record. */
  readonly record: number;
  /** Bytes of ended events. */
  readonly events: number;
}

export const capsOf = ({
  bytes,
  maxAuditRows,
}: Pick<Retention, "bytes" | "maxAuditRows">): RetentionCaps => ({
  readings: Math.floor((bytes * SHARES.readings) / READING_BYTES),
  record: Math.min(maxAuditRows, Math.floor((bytes * SHARES.record) / RECORD_ROW_BYTES)),
  events: Math.floor(bytes * SHARES.events),
});

/** Decimal units: 4.1 GB. */
export function formatBytes(bytes: number): string {
  const [size, unit] = bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${Math.round(size * 10) / 10} ${unit}`;
}

/** Part of its cap at which an alarm opens. It closes below the second: a level in between must not flap. */
const OPENS = 0.8;
const CLOSES = 0.75;

/** A kind of stored things that is near its cap, or beyond it. */
export interface RetentionAlarm {
  readonly kind: Retained;
  readonly since: Instant;
  /** Part of the cap that is used. */
  readonly used: number;
  /** Some of them left before their configured age. */
  readonly leftEarly: boolean;
  readonly message: string;
  readonly action: string;
}

/** What is retained, and the keys of the configuration that bound it. */
interface Words {
  readonly subject: string;
  readonly age: string;
  readonly cap: string;
}

const WORDS: Readonly<Record<Retained, Words>> = {
  readings: { subject: "readings", age: "report.keepReadings", cap: "retention.bytes" },
  record: {
    subject: "rows of the record",
    age: "retention.audit",
    cap: "retention.bytes or retention.maxAuditRows",
  },
  events: { subject: "ended events", age: "retention.events", cap: "retention.bytes or retention.maxEvents" },
};

/** The alarms before, and while, a cap of retention makes things leave before their configured age. */
export class RetentionAlarms {
  readonly #open = new Map<Retained, RetentionAlarm>();

  get open(): readonly RetentionAlarm[] {
    return [...this.#open.values()];
  }

  /** Takes a new measurement. Returns an alarm that has to be reported now; null: nothing new. */
  measured(kind: Retained, used: number, leavesEarly: boolean, now: Instant): RetentionAlarm | null {
    const before = this.#open.get(kind);
    if (!leavesEarly && used < (before === undefined ? OPENS : CLOSES)) {
      this.#open.delete(kind);
      return null;
    }
    const leftEarly = leavesEarly || (before?.leftEarly ?? false);
    const alarm = {
      kind,
      since: before?.since ?? now,
      used,
      leftEarly,
      ...formatAlarm(kind, used, leftEarly),
    };
    this.#open.set(kind, alarm);
    return before === undefined || leftEarly !== before.leftEarly ? alarm : null;
  }
}

function formatAlarm(
  kind: Retained,
  used: number,
  leftEarly: boolean,
): Pick<RetentionAlarm, "message" | "action"> {
  const { subject, age, cap } = WORDS[kind];
  const percent = Math.round(used * 100);
  return {
    message: leftEarly
      ? `${subject} leave before their age (${age}): what retention allows is used up`
      : `${subject} take ${percent} % of what retention allows: beyond that the oldest leave before their age (${age})`,
    action: `raise ${cap}, or shorten ${age}; setpointd check says how long each lasts`,
  };
}

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
