import { type TrackedEvent, overSince } from "../domain/event.ts";
import { type Millis, between, type EventId, type Instant } from "../domain/units.ts";

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
  isLive(event) && between(event.kind === "over" ? event.until : overSince(event), now) <= keep.events;

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
}
