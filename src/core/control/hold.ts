import { after, type ChargerId, type EventId, type Instant, instant } from "../units.ts";
import { LONGEST_TAIL } from "./intake.ts";
import type { TrackedEvent } from "./known.ts";

/** An operator freed a charger from the events that then held it; later events still apply. */
export interface Hold {
  readonly charger: ChargerId;
  readonly events: readonly EventId[];
  readonly since: Instant;
  /** The latest end of those events' windows on this charger. */
  readonly until: Instant;
}

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
