import { hash } from "node:crypto";

import type { TrackedEvent, KnownEvent, EventSummary, Revision } from "./event.ts";
import { type Instant, after, instant, later, minutes } from "./units.ts";

/** Longest spread of an unplanned end. An older ending has no release left to send. */
export const LONGEST_TAIL = minutes(10);

/** Report descriptors beyond this number are flagged as a mistake. */
export const MOST_DESCRIPTORS = 32;

/** No window of the event is open from this moment on. In the future while one may still be. */
export function overSince(known: KnownEvent): Instant {
  const tails = known.endings.map(({ at }) => after(at, LONGEST_TAIL));
  const ends = known.kind === "live" ? [lastEnd(known), ...tails] : tails;
  return ends.reduce(later, known.receivedAt);
}

/** End of the last possible window, with the largest start offset. */
function lastEnd({ revision: { event, start } }: KnownEvent & { readonly kind: "live" }): Instant {
  return after(after(start, event.randomizeStart), event.duration);
}

/** Reduces an event to its summary. `size`: characters that the whole event takes on disk. */
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

/** Fingerprint of one report descriptor and of the event's start and duration. */
export const askPrint = ({ event }: Revision, descriptor: number): string =>
  hash("sha256", JSON.stringify([event.reports[descriptor], event.start, event.duration])).slice(0, 16);

/**
 * Latest moment at which the event may hold on any charger, the spread of an unplanned end included. Null: none.
 * A start later than `now` is ignored. `since`: when the charger was released, perhaps before the clock was set back.
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
