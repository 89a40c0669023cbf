import { auditRow } from "../domain/audit.ts";
import type { Change } from "../domain/changes.ts";
import { type TrackedEvent, overSince } from "../domain/event.ts";
import type { OldRows } from "../domain/store.ts";
import { type Millis, between, type EventId, type Instant, iso, hours } from "../domain/units.ts";
import { type Comparison, inserted } from "../platform/collections.ts";
import { counted } from "../platform/text.ts";

/** Conditions under which events are forgotten. */
export interface Forgetting {
  readonly now: Instant;
  /** False: the clock may be wrong by years, so only number and size count. */
  readonly agesCount: boolean;
  /** True: the partner may still list the event, where it would return as new, or a report is pending. */
  readonly isNeeded: (id: EventId) => boolean;
  /** Cap on events per call. */
  readonly most: number;
}

/** Events that may be forgotten. Those that ended first come first. */
export function forgettable(
  known: Iterable<TrackedEvent>,
  keep: Pick<Retention, "events" | "maxEvents" | "withdrawn"> & { readonly maxBytes: number },
  { now, agesCount, isNeeded, most }: Forgetting,
): readonly TrackedEvent[] {
  const over = [...known].filter((event) => endOf(event) <= now);
  const ended = over.filter(isLive);
  let tooMany = ended.length - keep.maxEvents;
  let tooLarge = bytesOf(ended) - keep.maxBytes;
  const isOld = (event: TrackedEvent): boolean =>
    agesCount && between(endOf(event), now) > (isLive(event) ? keep.events : keep.withdrawn);
  const isExcess = (event: TrackedEvent): boolean => isLive(event) && (tooMany > 0 || tooLarge > 0);
  const mayGo = over.filter((event) => (isOld(event) || isExcess(event)) && !isNeeded(event.id));
  return firstEnded(mayGo, most).filter((event) => {
    // Events before it may have made enough room.
    if (!isOld(event) && !isExcess(event)) return false;
    if (isLive(event)) {
      tooMany -= 1;
      tooLarge -= bytesOf([event]);
    }
    return true;
  });
}

/** The first of these to end, in order. Sorting a million events for a hundred of them stalls the process for a second. */
function firstEnded(events: readonly TrackedEvent[], most: number): readonly TrackedEvent[] {
  let first: TrackedEvent[] = [];
  for (const event of events) {
    const last = first[most - 1];
    if (last !== undefined && endOf(last) <= endOf(event)) continue;
    first = inserted(first, event, byEnd);
    first.length = Math.min(first.length, most);
  }
  return first;
}

const byEnd: Comparison<TrackedEvent> = (a, b) => endOf(a) - endOf(b);

/** The moment from which no window of the event is open. */
const endOf = (event: TrackedEvent): Instant => (event.kind === "over" ? event.until : overSince(event));

/** Used part of the cap on ended events, by number or by size: the larger one. */
export function eventsUsed(
  known: Iterable<TrackedEvent>,
  { maxEvents, maxBytes }: Pick<Retention, "maxEvents"> & { readonly maxBytes: number },
): number {
  const ended = [...known].filter((event) => event.kind === "over" && isLive(event));
  return Math.max(ended.length / maxEvents, bytesOf(ended) / maxBytes);
}

/** True if an event is pruned before its configured age, for number or size. */
export const leavesEarly = (event: TrackedEvent, keep: Pick<Retention, "events">, now: Instant): boolean =>
  isLive(event) && between(endOf(event), now) <= keep.events;

/** Size on disk, in bytes. An event that is whole in memory counts once it is a summary. */
const bytesOf = (events: readonly TrackedEvent[]): number =>
  events.reduce((sum, event) => sum + (event.kind === "over" ? event.size : 0), 0);

const isLive = (event: TrackedEvent): boolean =>
  event.kind === "live" || (event.kind === "over" && event.was === "live");

/** Limits for keeping past data. */
export interface Retention {
  /** Ended events, counted from their last window end or their receipt, whichever is later. */
  readonly events: Millis;
  /** Maximum ended events. The oldest go first. */
  readonly maxEvents: number;
  /** Tombstones, counted from the withdrawal. */
  readonly withdrawn: Millis;
  /** Sent or abandoned reports, counted from their composition. */
  readonly reports: Millis;
  /** Audit rows. */
  readonly audit: Millis;
  /** Maximum audit rows. */
  readonly maxAuditRows: number;
  /** Bytes on disk of readings, audit rows and ended events together. `capsOf` divides them. */
  readonly bytes: number;
  /** Size of a stored charger message with its HMAC and its indexes, in bytes. */
  readonly readingBytes: number;
}

/** Kinds of stored data that grow with the site. */
export type Retained = "readings" | "record" | "events";

/** Share of `retention.bytes` of each kind. */
const SHARES: Readonly<Record<Retained, number>> = { readings: 0.6, record: 0.3, events: 0.1 };
/** Size of one row of the record with its indexes, in bytes. */
const RECORD_ROW_BYTES = 1000;

/** Caps by kind. Beyond a cap the oldest are pruned before their age. */
export interface RetentionCaps {
  /** Number of charger messages. */
  readonly readings: number;
  /** Number of rows of the record. */
  readonly record: number;
  /** Bytes of ended events. */
  readonly events: number;
}

export const capsOf = ({
  bytes,
  maxAuditRows,
  readingBytes,
}: Pick<Retention, "bytes" | "maxAuditRows" | "readingBytes">): RetentionCaps => ({
  readings: Math.floor((bytes * SHARES.readings) / readingBytes),
  record: Math.min(maxAuditRows, Math.floor((bytes * SHARES.record) / RECORD_ROW_BYTES)),
  events: Math.floor(bytes * SHARES.events),
});

/** Prunes these rows of the record. The checkpoint continues the chain. */
export function pruned({ rows, through, hash, at }: OldRows, now: Instant): readonly Change[] {
  const message = `the oldest ${rows} rows of the record, up to row ${through} of ${iso(at)}, were pruned`;
  return [
    auditRow("checkpoint", now, message, { facts: { through, hash } }),
    { kind: "auditPruned", through },
  ];
}

/** Formats in decimal units, for example `4.1 GB`. */
export function formatBytes(bytes: number): string {
  const [size, unit] = bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${Math.round(size * 10) / 10} ${unit}`;
}

/** Parts of a cap at which an alarm opens and closes. They differ so that it does not flap. */
const OPENS = 0.8;
const CLOSES = 0.75;

/** A kind of stored data near or beyond its cap. */
export interface RetentionAlarm {
  readonly kind: Retained;
  readonly since: Instant;
  /** Part of the cap that is used. */
  readonly used: number;
  /** True: some were pruned before their configured age. */
  readonly leftEarly: boolean;
  readonly message: string;
  readonly action: string;
}

/** Name of a kind, and the configuration keys that limit it. */
interface Labels {
  readonly subject: string;
  readonly age: string;
  readonly cap: string;
}

const LABELS: Readonly<Record<Retained, Labels>> = {
  readings: { subject: "readings", age: "report.keepReadings", cap: "retention.bytes" },
  record: {
    subject: "rows of the record",
    age: "retention.audit",
    cap: "retention.bytes or retention.maxAuditRows",
  },
  events: { subject: "ended events", age: "retention.events", cap: "retention.bytes or retention.maxEvents" },
};

/** Alarms before and while a cap causes pruning before the configured age. */
export class RetentionAlarms {
  readonly #open = new Map<Retained, RetentionAlarm>();

  get open(): readonly RetentionAlarm[] {
    return [...this.#open.values()];
  }

  /** Applies a measurement. Returns an alarm to report now. Null: nothing new. */
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
  const { subject, age, cap } = LABELS[kind];
  const percent = Math.round(used * 100);
  return {
    message: leftEarly
      ? `${subject} are pruned before their age (${age}): their disk space is used up`
      : `${subject} use ${percent} % of their disk space: beyond it the oldest are pruned before their age (${age})`,
    action: `raise ${cap}, or shorten ${age}; setpointd check shows how long each kind lasts`,
  };
}

const DAY = hours(24);
/** Assumption: one message per charger every ten seconds. */
const MESSAGES_A_DAY = 8640;
/** After this many days one message per minute is kept. */
const FULL_DAYS = 8;
const THINNED = 6;
/** Assumption: events per day, each for all chargers. */
const EVENTS_A_DAY = 20;
/** Rows per event and charger: decision, send, acknowledgement and verdict, at its start and at its end. */
const ROWS_OF_EVENT = 8;
/** Size of an event without targets, and of one target, in bytes. */
const EVENT_BYTES = 1500;
const TARGET_BYTES = 45;

/** Figures of a site that decide how much it stores. */
export interface ForecastSite {
  readonly chargers: number;
  readonly keepReadings: Millis;
  readonly reportsPerHour: number;
}

/** Retention of each kind of data at this site, one line each. */
export function retentionForecast(
  retention: Retention,
  { chargers, keepReadings, reportsPerHour }: ForecastSite,
): readonly string[] {
  const caps = capsOf(retention);
  const [rows, size] = [EVENTS_A_DAY * ROWS_OF_EVENT * chargers, EVENT_BYTES + TARGET_BYTES * chargers];
  const eventDays = Math.min(caps.events / size, retention.maxEvents) / EVENTS_A_DAY;
  return [
    `up to ${formatBytes(retention.bytes)} are kept on disk (retention.bytes):`,
    `- readings: ${lasts(readingDays(caps.readings, chargers), keepReadings)} at ${counted(chargers, "charger")} every 10 s`,
    `- record: ${lasts(caps.record / rows, retention.audit)} at ${EVENTS_A_DAY} events a day for all of them`,
    `- ended events: ${lasts(eventDays, retention.events)} at ${EVENTS_A_DAY} events a day for all of them`,
    `- reports: at most ${reportsPerHour} requests an hour; more reports than that wait`,
  ];
}

/** Days of readings that fit, with thinning after `FULL_DAYS`. */
function readingDays(rows: number, chargers: number): number {
  const days = rows / (MESSAGES_A_DAY * chargers);
  return days <= FULL_DAYS ? days : FULL_DAYS + (days - FULL_DAYS) * THINNED;
}

/** Configured age, or less if the disk space does not suffice. */
function lasts(days: number, age: Millis): string {
  const wanted = `${Math.round(age / DAY)} days`;
  if (days * DAY >= age) return wanted;
  const found = days < 2 ? `${Math.round(days * 24)} hours` : `${Math.floor(days)} days`;
  return `about ${found} instead of ${wanted}`;
}
