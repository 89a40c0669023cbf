import { millis, minutes } from "../domain/units.ts";
import { backoff } from "../platform/clock.ts";

/** Failures of one delivery, each while another was stored, before it goes to the quarantine. */
export const MOST_FAILURES = 3;
/** Waits before a delivery is tried again. They double with each failure. */
const FIRST_WAIT = millis(500);
const LONGEST_WAIT = minutes(1);

/** Failures of one delivery. Times by the monotonic clock, ms. */
export interface DeliveryFailure {
  readonly tries: number;
  /** Failures beside which another delivery was stored: a database that stores nothing is no fault of this one. */
  readonly count: number;
  /** Deliveries that were stored before the last one. */
  readonly stored: number;
  readonly tryAt: number;
}

/** The failures of a delivery after one more. `stored`: deliveries that were stored so far; `before`: until the last failure. */
export function failedAgain(
  last: DeliveryFailure | undefined,
  { stored, before, now }: { readonly stored: number; readonly before: number; readonly now: number },
): DeliveryFailure {
  const tries = last?.tries ?? 0;
  const count = (last?.count ?? 0) + (stored > (last?.stored ?? before) ? 1 : 0);
  return { tries: tries + 1, count, stored, tryAt: now + backoff(tries, 1, FIRST_WAIT, LONGEST_WAIT) };
}

/** A delivery that failed is tried again after a wait, or once another was stored: the next failure counts then. */
export const isDueAgain = (last: DeliveryFailure | undefined, stored: number, now: number): boolean =>
  last === undefined || now >= last.tryAt || stored > last.stored;

/** Deliveries to sites of a fleet that could not be stored. */
export class DeliveryFailures {
  readonly #byId = new Map<number, DeliveryFailure & { readonly site: string }>();
  readonly #monotonic: () => number;
  #stored = 0;

  /** `monotonic` in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** True: its site has other failures, so it gets the next delivery alone as well. */
  stored(id: number, site: string): boolean {
    this.#byId.delete(id);
    this.#stored += 1;
    return this.#byId.values().some((each) => each.site === site);
  }

  /** True: the delivery belongs in the quarantine. */
  failed(id: number, site: string): boolean {
    const stored = this.#stored;
    const failure = failedAgain(this.#byId.get(id), { stored, before: stored, now: this.#monotonic() });
    this.#byId.set(id, { ...failure, site });
    return failure.count >= MOST_FAILURES;
  }

  /** Failures of a delivery that waits no more are dropped: it is in the quarantine, or with another process. */
  forget(id: number): void {
    this.#byId.delete(id);
  }

  get ids(): readonly number[] {
    return [...this.#byId.keys()];
  }

  /**
   * Deliveries that are given to their sites now. A site with failures gets one at a time, as several share a
   * commit: the one that was tried least, of those whose wait is over. `busy`: sites that ingest a delivery.
   */
  due<T extends { readonly id: number; readonly site: string }>(
    waiting: readonly T[],
    busy: ReadonlySet<string>,
  ): readonly T[] {
    const failing = new Set([...this.#byId.values()].map(({ site }) => site));
    const triesOf = ({ id }: T): number => this.#byId.get(id)?.tries ?? 0;
    const now = this.#monotonic();
    const next = new Map<string, T>();
    for (const each of waiting) {
      if (!isDueAgain(this.#byId.get(each.id), this.#stored, now)) continue;
      const best = next.get(each.site);
      if (best === undefined || triesOf(each) < triesOf(best)) next.set(each.site, each);
    }
    return waiting.filter(
      (each) => !failing.has(each.site) || (next.get(each.site) === each && !busy.has(each.site)),
    );
  }
}
