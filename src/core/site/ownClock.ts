import { earlier, type Instant, millis, minutes } from "../units.ts";

/** When a charger says that something was so, and when that came. */
export interface Stamped {
  readonly at: Instant;
  readonly receivedAt: Instant;
}

/** A clock that is behind by less is not told from a measurement that took its time on the way. */
const NOTABLE = minutes(1);
/** A charger may keep readings while it is cut off, but not for longer. */
const MOST_BEHIND = minutes(7 * 24 * 60);
/** Lags of one clock differ by less than this, whatever the network does. */
const STEADY = millis(500);
/** Of one that is known to be late they may differ by this part of the time between two messages as well. */
const PART = 1 / 5;

/** Whether the time that a charger names is worth believing; of the first word that is late nobody knows. */
export type ClockTrust = "right" | "behind" | "unknown";

/**
 * Of a live message, by the one before it (null: there was none). What was kept while the charger was cut off catches
 * up, message by message; a clock that is behind lags alike each time, or was set back.
 */
export function clockTrust(before: Stamped | null, next: Stamped): ClockTrust {
  if (next.receivedAt - next.at <= NOTABLE) return "right";
  if (isBeyondAnyBuffer(next)) return "behind";
  if (before === null) return "unknown";
  const slack = Math.max(STEADY, (next.receivedAt - before.receivedAt) * PART);
  return next.at < before.at || lagsAlike(before, next, slack) ? "behind" : "right";
}

/** Whether the same clock, right or wrong, spoke twice without anything being kept in between. */
export const lagsAlike = (before: Stamped, next: Stamped, slack: number = STEADY): boolean =>
  Math.abs(next.receivedAt - before.receivedAt - (next.at - before.at)) <= slack;

/** Nothing is so after it was received, and nothing is kept for longer than a charger is cut off. */
export const believedAt = (word: Stamped): Instant =>
  isBeyondAnyBuffer(word) ? word.receivedAt : earlier(word.at, word.receivedAt);

const isBeyondAnyBuffer = ({ at, receivedAt }: Stamped): boolean => at < receivedAt - MOST_BEHIND;
