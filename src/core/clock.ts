import { type Instant, type Millis, millis, seconds } from "./units.ts";

/** The same moment on both clocks: the wall's, which can be set, and one that never jumps. */
export interface ClockReading {
  readonly wall: Instant;
  /** Milliseconds since some moment. */
  readonly monotonic: Millis;
}

/** Less than this is slewing, or a slow turn of the loop. */
const SMALLEST_JUMP = seconds(2);

/** How far the wall clock was set, forward or back, between two readings; zero: it was not (DESIGN 5.7). */
export function jumpBetween(before: ClockReading, after: ClockReading): Millis {
  const jump = after.wall - before.wall - (after.monotonic - before.monotonic);
  return millis(Math.abs(jump) < SMALLEST_JUMP ? 0 : jump);
}
