import type { EventId, Instant } from "../units.ts";
import type { KnownEvent } from "./known.ts";

/** Complete lists in a row that lacked an event before `GET /events/{id}` is asked (DESIGN 5.2). */
export const LISTS_BEFORE_ASKING = 2;

/** For each live event that has not ended: how many complete lists in a row have lacked it, this one included. */
export function absences(
  known: Iterable<KnownEvent>,
  listed: ReadonlySet<EventId>,
  before: ReadonlyMap<EventId, number>,
  now: Instant,
): ReadonlyMap<EventId, number> {
  const missing = new Map<EventId, number>();
  for (const event of known) {
    if (event.kind === "live" && !listed.has(event.id) && !hasEnded(event, now)) {
      missing.set(event.id, (before.get(event.id) ?? 0) + 1);
    }
  }
  return missing;
}

/** Requests by id are few: of these events the one that starts first is settled first. */
export const soonestFirst = (known: Iterable<KnownEvent>, ids: ReadonlySet<EventId>): readonly EventId[] =>
  [...known]
    .flatMap((event) => (event.kind === "live" && ids.has(event.id) ? [event] : []))
    .toSorted((a, b) => a.revision.start - b.revision.start)
    .map(({ id }) => id);

/** No vehicle's window can be open any more, however late it started. */
export function hasEnded(known: KnownEvent & { kind: "live" }, now: Instant): boolean {
  const { event, start } = known.revision;
  return start + event.randomizeStart + event.duration <= now;
}
