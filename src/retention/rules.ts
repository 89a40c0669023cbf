import { type TrackedEvent, overSince } from "../domain/event.ts";
import type { Retention } from "../domain/retention.ts";
import { between, type EventId, type Instant } from "../domain/units.ts";

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
