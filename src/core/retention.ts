import { LONGEST_TAIL } from "./control/intake.ts";
import type { KnownEvent, TrackedEvent } from "./control/known.ts";
import { after, between, type EventId, type Instant, later, type Millis } from "./units.ts";

/** How long what is over is kept, and how much of it. */
export interface Retention {
  /** Ended events, from their last window's end or their receipt, whichever is later. */
  readonly events: Millis;
  /** Ended events beyond this number go before their time, the oldest first. */
  readonly maxEvents: number;
  /** Tombstones, from the withdrawal. */
  readonly withdrawn: Millis;
  /** Reports that were sent, or given up, from when they were composed. */
  readonly reports: Millis;
  /** Rows of the record. */
  readonly audit: Millis;
  /** Rows beyond this number go before their time. */
  readonly maxAuditRows: number;
  /** Bytes on disk of readings, record and ended events together. Each has a share of them (see `capsOf`). */
  readonly bytes: number;
}

/** From this moment on nothing of an event can be open for any vehicle; in the future while something still can. */
export function overSince(known: KnownEvent): Instant {
  const tails = known.endings.map(({ at }) => after(at, LONGEST_TAIL));
  const ends = known.kind === "live" ? [lastEnd(known), ...tails] : tails;
  return ends.reduce(later, known.receivedAt);
}

/** However late a vehicle started. */
function lastEnd({ revision: { event, start } }: KnownEvent & { readonly kind: "live" }): Instant {
  return after(after(start, event.randomizeStart), event.duration);
}

export interface Forgetting {
  readonly now: Instant;
  /** False: the clock may be wrong by years, so that nothing is old because it says so; only number and size count. */
  readonly agesCount: boolean;
  /** The partner may still list it, or waits for a report: forgotten, it would only come back as news. */
  readonly isNeeded: (id: EventId) => boolean;
  /** At most so many at a time. */
  readonly most: number;
}

/** The events that need not be known any more, those that have been over the longest first. */
export function forgettable(
  known: Iterable<TrackedEvent>,
  keep: Pick<Retention, "events" | "maxEvents" | "withdrawn"> & { readonly maxBytes: number },
  { now, agesCount, isNeeded, most }: Forgetting,
): readonly TrackedEvent[] {
  const over = [...known]
    .map((event) => ({ event, since: event.kind === "over" ? event.until : overSince(event) }))
    .filter(({ since }) => since <= now)
    .toSorted((a, b) => a.since - b.since);
  const ended = over.map(({ event }) => event).filter(isLive);
  let tooMany = ended.length - keep.maxEvents;
  let tooLarge = bytesOf(ended) - keep.maxBytes;
  const forgotten: TrackedEvent[] = [];
  for (const { event, since } of over) {
    const keptFor = isLive(event) ? keep.events : keep.withdrawn;
    const isOld = agesCount && between(since, now) > keptFor;
    const isExcess = isLive(event) && (tooMany > 0 || tooLarge > 0);
    if ((!isOld && !isExcess) || isNeeded(event.id)) continue;
    forgotten.push(event);
    if (isLive(event)) {
      tooMany -= 1;
      tooLarge -= bytesOf([event]);
    }
    if (forgotten.length === most) break;
  }
  return forgotten;
}

/** How much of what retention allows for ended events is used: their number or their size, whichever is nearer. */
export function eventsUsed(
  known: Iterable<TrackedEvent>,
  { maxEvents, maxBytes }: Pick<Retention, "maxEvents"> & { readonly maxBytes: number },
): number {
  const ended = [...known].filter((event) => event.kind === "over" && isLive(event));
  return Math.max(ended.length / maxEvents, bytesOf(ended) / maxBytes);
}

/** An event that leaves by number or size: it is younger than configured. */
export const leavesEarly = (event: TrackedEvent, keep: Pick<Retention, "events">, now: Instant): boolean =>
  isLive(event) && between(event.kind === "over" ? event.until : overSince(event), now) <= keep.events;

/** On disk. An event that is whole in memory counts once it is a summary there. */
const bytesOf = (events: readonly TrackedEvent[]): number =>
  events.reduce((sum, event) => sum + (event.kind === "over" ? event.size : 0), 0);

const isLive = (event: TrackedEvent): boolean =>
  event.kind === "live" || (event.kind === "over" && event.was === "live");

/** The oldest rows of the record that may go, and what the checkpoint row must say of the last of them. */
export interface OldRows {
  readonly rows: number;
  readonly through: number;
  readonly hash: string;
  /** When the last of them was written. */
  readonly at: Instant;
}

export interface OldRowsQuery {
  /** Rows written before then may go; null: none for its age. */
  readonly before: Instant | null;
  /** Rows beyond this number may go. */
  readonly maxRows: number;
  /** At most so many at a time. */
  readonly most: number;
}
