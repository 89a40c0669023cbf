import type { ChargerId, Instant } from "../../domain/units.ts";
import { DueQueue } from "../../platform/dueQueue.ts";

/** When chargers want to be evaluated again: the refresh of a lease, a retry, the end of a wait. */
export class WakeTimes {
  readonly #queue = new DueQueue<ChargerId>();
  readonly #earliest = new Map<ChargerId, Instant>();

  /** Asks for an evaluation at a moment. An earlier request makes a later one superfluous. */
  wake(charger: ChargerId, at: Instant): void {
    const asked = this.#earliest.get(charger);
    if (asked !== undefined && asked <= at) return;
    this.#earliest.set(charger, at);
    this.#queue.push(at, charger);
  }

  /** The chargers that asked to be evaluated by now. */
  woken(now: Instant): ReadonlySet<ChargerId> {
    const due = this.#queue.due(now);
    for (const charger of due) {
      // A request that an earlier one replaced is still queued. Each evaluation asks again, so they would multiply.
      if ((this.#earliest.get(charger) ?? Infinity) > now) due.delete(charger);
      else this.#earliest.delete(charger);
    }
    return due;
  }

  next(): Instant | undefined {
    return this.#queue.next();
  }
}
