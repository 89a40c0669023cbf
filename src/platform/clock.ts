import { after, type Instant, instant, later, type Millis, millis, seconds } from "../domain/units.ts";

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

/**
 * How far our clock is ahead of the partner's, where that is more than is tolerated; 0: it is not, or nobody can say.
 * `partner`: theirs, with the moment when they told it; what has passed since, the clock that never jumps tells.
 */
export function aheadOf(partner: ClockReading | null, ours: ClockReading, tolerated: Millis): Millis {
  const ahead = partner === null ? millis(0) : jumpBetween(partner, ours);
  return ahead > tolerated ? ahead : millis(0);
}

/**
 * What time it is. While the wall clock is behind a moment that already was, time goes on from there by the clock that
 * never jumps: what runs ends when it should, and new starts wait until the wall clock is believed again (DESIGN 5.7).
 */
export class BelievedClock {
  readonly #read: () => ClockReading;
  /** The wall clock has just fallen behind. */
  readonly #onDoubt: () => void;
  #last: ClockReading;
  #isDoubted: boolean;

  /** `recorded`: the last moment that is on record; null: none. */
  constructor(read: () => ClockReading, recorded: Instant | null, onDoubt: () => void) {
    this.#read = read;
    this.#onDoubt = onDoubt;
    this.#last = read();
    this.#isDoubted = recorded !== null && this.#last.wall < recorded;
    if (recorded !== null && this.#isDoubted) this.#last = { ...this.#last, wall: recorded };
  }

  get isDoubted(): boolean {
    return this.#isDoubted;
  }

  now(): Instant {
    const { wall, monotonic } = this.#read();
    const fallsBehind = !this.#isDoubted && wall < this.#last.wall - SMALLEST_JUMP;
    if (fallsBehind) this.#isDoubted = true;
    const carriedOn = after(this.#last.wall, millis(monotonic - this.#last.monotonic));
    this.#last = { wall: this.#isDoubted ? later(wall, carriedOn) : wall, monotonic };
    if (fallsBehind) this.#onDoubt();
    // The other clock counts parts of milliseconds, which add up here but are no moment that can be stored.
    return instant(Math.floor(this.#last.wall));
  }

  /** The wall clock is right after all, or nobody knows better. */
  believe(): void {
    this.#isDoubted = false;
    this.#last = this.#read();
  }
}
