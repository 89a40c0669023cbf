/** Interval of the timer that measures how busy the machine is, ms. */
const TICK_MS = 200;
/** A timer that is less late than this is on time, ms. */
const ON_TIME_MS = 100;

/** A time in which this process did not run. `from`, `until`: ms since 1970. */
export interface Stall {
  readonly from: number;
  readonly until: number;
}

/** Ms of a span in which this process did not run. */
export const lateIn = (stalls: readonly Stall[], from: number, until: number): number =>
  stalls.reduce(
    (sum, stall) => sum + Math.max(0, Math.min(until, stall.until) - Math.max(from, stall.from)),
    0,
  );

/** When the timers of this process were late. The gateways run on the same machine, so they waited too. */
export class Stalls implements Disposable {
  readonly all: Stall[] = [];
  #last = Date.now();
  readonly #timer = setInterval(() => {
    const now = Date.now();
    const due = this.#last + TICK_MS;
    this.#last = now;
    if (now - due > ON_TIME_MS) this.all.push({ from: due, until: now });
  }, TICK_MS);

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
