import { LONGEST_TAIL } from "./control/intake.ts";
import type { KnownEvent } from "./control/known.ts";
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
  /** False: the clock may be wrong by years, so that nothing is old because it says so; only the number counts. */
  readonly agesCount: boolean;
  /** The partner may still list it, or waits for a report: forgotten, it would only come back as news. */
  readonly isNeeded: (id: EventId) => boolean;
  /** At most so many at a time. */
  readonly most: number;
}

/** The events that need not be known any more, those that have been over the longest first. */
export function forgettable(
  known: Iterable<KnownEvent>,
  keep: Pick<Retention, "events" | "maxEvents" | "withdrawn">,
  { now, agesCount, isNeeded, most }: Forgetting,
): readonly KnownEvent[] {
  const over = [...known]
    .map((event) => ({ event, since: overSince(event) }))
    .filter(({ since }) => since <= now)
    .toSorted((a, b) => a.since - b.since);
  let tooMany = over.filter(({ event }) => event.kind === "live").length - keep.maxEvents;
  const forgotten: KnownEvent[] = [];
  for (const { event, since } of over) {
    const keptFor = event.kind === "live" ? keep.events : keep.withdrawn;
    const isOld = agesCount && between(since, now) > keptFor;
    const isExcess = event.kind === "live" && tooMany > 0;
    if ((!isOld && !isExcess) || isNeeded(event.id)) continue;
    forgotten.push(event);
    if (event.kind === "live") tooMany -= 1;
    if (forgotten.length === most) break;
  }
  return forgotten;
}

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
