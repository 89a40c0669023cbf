import { between, type Instant, instant } from "../units.ts";

/** Of what a charger says of one minute, more messages than this are not stored: one that flips its state on and on (F95). */
const MOST_OF_A_MINUTE = 120;
/** Ahead of that rate it may be by a day of something to keep each ten seconds: it empties its buffer in one go. */
const MOST_AHEAD = 10_000;
/** What comes live, and what was kept meanwhile, come in turns: so many minutes are counted at a time. */
const MINUTES_COUNTED = 8;
const MINUTE = 60_000;

/** How much of one charger may be stored, by when it was so; and, whatever its clock says, not much more by when it came. */
export class Allowance {
  /** The one that was looked at last comes last. */
  readonly #counts = new Map<number, number>();
  #ahead = 0;
  #lookedAt = instant(0);

  /** Whether one more message may be stored, that is from `at` and came now: then it counts. */
  takes(at: Instant, now: Instant): boolean {
    const passed = Math.max(0, between(this.#lookedAt, now)) / MINUTE;
    this.#lookedAt = now;
    this.#ahead = Math.max(0, this.#ahead - passed * MOST_OF_A_MINUTE);
    const minute = Math.floor(at / MINUTE);
    const count = this.#counts.get(minute) ?? 0;
    const isTaken = count < MOST_OF_A_MINUTE && this.#ahead < MOST_AHEAD;
    if (isTaken) this.#ahead += 1;
    this.#counts.delete(minute);
    this.#counts.set(minute, isTaken ? count + 1 : count);
    const [oldest = minute] = this.#counts.keys();
    if (this.#counts.size > MINUTES_COUNTED) this.#counts.delete(oldest);
    return isTaken;
  }
}
