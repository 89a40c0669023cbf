import type { ControlState } from "../state.ts";
import type { ChargerId, Instant, Millis } from "../../domain/units.ts";
import { inTurn } from "./holdBack.ts";
import type { Reevaluation } from "../ports.ts";

/** Chargers evaluated in one turn of the event loop, and committed in one transaction. */
export const SLICE = 500;
/** After a commit that took longer, the next slice is larger: a slow disk gets fewer commits, ms. */
const SLOW_COMMIT = 500;
const GROWTH = 2;

/**
 * Chargers that wait for their evaluation. A large event touches 20,000 of them: they are evaluated in slices, each with
 * a commit of its own, and the event loop runs in between. An evaluation reads what holds at its own moment, so its
 * order among others does not matter.
 */
export class EvaluationQueue {
  readonly #depot: ControlState;
  /** Each with whether its command is to be sent again. */
  #waiting = new Map<ChargerId, boolean>();
  #slice = SLICE;

  constructor(depot: ControlState) {
    this.#depot = depot;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** What is to be evaluated now: all of these where they are few, or the first of all that wait. */
  take(touches: readonly Reevaluation[], now: Instant): readonly Reevaluation[] {
    const merged = new Map<ChargerId, boolean>();
    for (const { charger, reassert } of touches)
      merged.set(charger, reassert || merged.get(charger) === true || this.#waiting.get(charger) === true);
    const isSmall = merged.size <= this.#slice;
    for (const [charger, reassert] of merged) {
      if (isSmall) this.#waiting.delete(charger);
      else this.#waiting.set(charger, reassert);
    }
    if (isSmall) return touchesIn(inTurn(this.#depot, merged, now));
    this.#waiting = new Map(inTurn(this.#depot, this.#waiting, now));
    return this.next();
  }

  /** The next slice of those that wait. */
  next(): readonly Reevaluation[] {
    const slice = touchesIn(this.#waiting.entries().take(this.#slice));
    for (const { charger } of slice) this.#waiting.delete(charger);
    return slice;
  }

  /** Time that the commit of the last slice took. */
  took(ms: Millis): void {
    this.#slice = ms > SLOW_COMMIT ? this.#slice * GROWTH : SLICE;
  }
}

const touchesIn = (entries: Iterable<readonly [ChargerId, boolean]>): readonly Reevaluation[] =>
  Array.from(entries, ([charger, reassert]) => ({ charger, reassert }));
