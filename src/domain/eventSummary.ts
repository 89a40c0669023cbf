import { hash } from "node:crypto";

import type { TrackedEvent, KnownEvent, EventSummary, Revision } from "./event.ts";
import { type Instant, after, instant, later, minutes } from "./units.ts";

/** The longest that an unplanned end is spread over; an ending older than this has nothing left to release. */
export const LONGEST_TAIL = minutes(10);

/** More descriptors than this are a mistake: the rest is flagged. */
export const MOST_DESCRIPTORS = 32;

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

/** What memory keeps of an event once it is over. `size`: characters that the whole event takes on disk. */
export function summaryOf(known: KnownEvent, size: number): EventSummary {
  const { id, receivedAt, descriptors } = known;
  const common = { kind: "over", id, receivedAt, until: overSince(known), descriptors, size } as const;
  if (known.kind === "withdrawn") {
    return {
      ...common,
      was: "withdrawn",
      revision: known.watermark,
      hash: null,
      start: receivedAt,
      asks: [],
    };
  }
  const { event, start } = known.revision;
  const asks = event.reports
    .slice(0, MOST_DESCRIPTORS)
    .map((_, descriptor) => askPrint(known.revision, descriptor));
  return { ...common, was: "live", revision: event.revision, hash: event.hash, start, asks };
}

/** A print of what one report descriptor asks for, and of when. */
export const askPrint = ({ event }: Revision, descriptor: number): string =>
  hash("sha256", JSON.stringify([event.reports[descriptor], event.start, event.duration])).slice(0, 16);

/**
 * Until when at most what an event has asked for by now may hold somewhere, the spread of an unplanned end included;
 * null: nowhere any more. What it may ask for later is another matter, but not what held when the charger was freed
 * (`since`), before the clock was set back.
 */
export function openUntil(
  known: TrackedEvent | undefined,
  now: Instant,
  since: Instant = now,
): Instant | null {
  if (known === undefined || known.kind === "over") return null;
  const ends = known.endings.map(({ at }) => after(at, LONGEST_TAIL));
  if (known.kind === "live" && known.revision.start <= Math.max(now, since)) {
    const { start, event } = known.revision;
    ends.push(after(after(start, event.randomizeStart), event.duration));
  }
  const last = Math.max(...ends);
  return last > now ? instant(last) : null;
}
