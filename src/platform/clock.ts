import { after, type Instant, instant, later, type Millis, millis, seconds } from "../domain/units.ts";

/** A moment on two clocks: the wall clock, which can be set, and the monotonic clock. */
export interface ClockReading {
  readonly wall: Instant;
  /** Monotonic clock, ms since an arbitrary moment. */
  readonly monotonic: Millis;
}

/** Smaller differences are slewing or a slow event loop. */
const SMALLEST_JUMP = seconds(2);

/** Step of the wall clock between two readings, forward or back. Zero: not set. */
export function jumpBetween(before: ClockReading, after: ClockReading): Millis {
  const jump = after.wall - before.wall - (after.monotonic - before.monotonic);
  return millis(Math.abs(jump) < SMALLEST_JUMP ? 0 : jump);
}

/**
 * Lead of our clock over the partner's, beyond `tolerated`. Zero: within it, or unknown.
 * `partner`: the partner's `Date` and the monotonic time of its receipt. Null: none received.
 */
export function aheadOf(partner: ClockReading | null, ours: ClockReading, tolerated: Millis): Millis {
  const ahead = partner === null ? millis(0) : jumpBetween(partner, ours);
  return ahead > tolerated ? ahead : millis(0);
}

/**
 * The time that decisions use. While the wall clock is behind an earlier moment, time continues on the monotonic
 * clock.
 * Running commands then end on time, and new starts wait until the wall clock is believed again.
 */
export class BelievedClock {
  readonly #read: () => ClockReading;
  /** Called when the wall clock falls behind. */
  readonly #onDoubt: () => void;
  #last: ClockReading;
  #isDoubted: boolean;

  /** `recorded`: time of the last audit row. Null: none. */
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

  readonly now = (): Instant => {
    const { wall, monotonic } = this.#read();
    const fallsBehind = !this.#isDoubted && wall < this.#last.wall - SMALLEST_JUMP;
    if (fallsBehind) this.#isDoubted = true;
    const carriedOn = after(this.#last.wall, millis(monotonic - this.#last.monotonic));
    this.#last = { wall: this.#isDoubted ? later(wall, carriedOn) : wall, monotonic };
    if (fallsBehind) this.#onDoubt();
    // The monotonic clock has fractions of a millisecond; stored moments have none.
    return instant(Math.floor(this.#last.wall));
  };

  /** Accepts the wall clock: the partner's `Date` agrees, or the waiting time has passed. */
  believe(): void {
    this.#isDoubted = false;
    this.#last = this.#read();
  }
}

/**
 * Full jitter: uniform between zero and the ceiling, so that gateways do not retry at the same time. `fraction`:
 * random, 0 to 1.
 */
export const backoff = (failures: number, fraction: number, first: Millis, most: Millis): Millis =>
  millis(Math.round(fraction * Math.min(most, first * 2 ** Math.min(failures, 30))));
