import { type Instant, instant, type Millis, millis } from "../../src/core/units.ts";

interface Timer {
  readonly at: number;
  /** Of equals the one that was set first rings first. */
  readonly order: number;
  readonly every: number | null;
  readonly ring: () => void;
  over: boolean;
}

/** What Node makes of a delay: at least 1 ms, and what a 32-bit integer cannot hold fires at once. */
const delayOf = (ms: number | undefined): number =>
  ms === undefined || !(ms >= 1) || ms > 2 ** 31 - 1 ? 1 : Math.trunc(ms);

const { setImmediate: turn } = globalThis;
/** All microtasks there are, and those that they cause. Takes no virtual time. */
const microtasks = (): Promise<void> => new Promise((resolve) => void turn(resolve));

const MOST_ROUNDS = 10_000;

const NAMES = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
] as const;

const cancel = (timer: Timer | undefined): void => {
  if (timer !== undefined) timer.over = true;
};

/**
 * Time that passes only when it is told to: timers and immediates of the whole process ring here, one after another,
 * in an order that depends on nothing but what was asked. Wall and monotonic time are kept apart, so that the
 * gateway's clock can be set.
 */
export class VirtualClock implements Disposable {
  /** Called after each timer or immediate with all that it caused. */
  onTurn: () => void = () => {};
  /** How far the gateway's own clock is ahead of the true time, ms. */
  aheadBy = 0;
  readonly #start: number;
  readonly #timers: Timer[] = [];
  #immediates: Timer[] = [];
  #elapsed = 0;
  #asked = 0;
  readonly #real = NAMES.map((name) => [name, globalThis[name]] as const);

  constructor(start: Instant) {
    this.#start = start;
    const set =
      (every: boolean) =>
      (callback: (...given: unknown[]) => void, ms?: number, ...given: unknown[]): object =>
        this.#set(callback, delayOf(ms), every, given);
    Object.assign(globalThis, {
      setTimeout: set(false),
      setInterval: set(true),
      setImmediate: (callback: (...given: unknown[]) => void, ...given: unknown[]) =>
        this.#next(callback, given),
      clearTimeout: cancel,
      clearInterval: cancel,
      clearImmediate: cancel,
    });
  }

  /** What the gateway takes the time to be. */
  readonly gateway = (): Instant => instant(this.#start + this.#elapsed + this.aheadBy);
  /** What the time is. */
  readonly truth = (): Instant => instant(this.#start + this.#elapsed);
  /** Since the start; never jumps. */
  readonly monotonic = (): Millis => millis(this.#elapsed);

  /** The process stands still: whatever is due meanwhile rings late. */
  stall(ms: number): void {
    this.#elapsed += ms;
  }

  /** Rings whatever is due up to and including that moment, until `isOver`. */
  async advanceTo(elapsed: number, isOver: () => boolean): Promise<void> {
    await this.#settle();
    for (let timer = this.#timers[0]; timer !== undefined && timer.at <= elapsed; timer = this.#timers[0]) {
      if (isOver()) return;
      this.#removeFirst();
      if (timer.over) continue;
      this.#elapsed = Math.max(this.#elapsed, timer.at);
      if (timer.every === null) timer.over = true;
      timer.ring();
      await this.#settle();
    }
    this.#elapsed = Math.max(this.#elapsed, elapsed);
  }

  /** Everything that needs no time. */
  async #settle(): Promise<void> {
    await microtasks();
    this.onTurn();
    for (let round = 0; this.#immediates.length > 0; round += 1) {
      if (round > MOST_ROUNDS) throw new Error("the program turns in circles without letting time pass");
      const due = this.#immediates;
      this.#immediates = [];
      for (const immediate of due) {
        if (immediate.over) continue;
        immediate.ring();
        await microtasks();
        this.onTurn();
      }
    }
  }

  #next(callback: (...given: unknown[]) => void, given: readonly unknown[]): Timer {
    const immediate: Timer = { at: 0, order: 0, every: null, ring: () => callback(...given), over: false };
    this.#immediates.push(immediate);
    return immediate;
  }

  #set(
    callback: (...given: unknown[]) => void,
    delay: number,
    repeats: boolean,
    given: readonly unknown[],
  ): object {
    const timer = {
      every: repeats ? delay : null,
      over: false,
      at: this.#elapsed + delay,
      order: (this.#asked += 1),
      ring: () => {
        callback(...given);
        if (!repeats || timer.over) return;
        timer.at = this.#elapsed + delay;
        timer.order = this.#asked += 1;
        this.#push(timer);
      },
      ref: () => timer,
      unref: () => timer,
    };
    this.#push(timer);
    return timer;
  }

  #push(timer: Timer): void {
    let hole = this.#timers.length;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = this.#timers[parent];
      if (above === undefined || isBefore(above, timer)) break;
      this.#timers[hole] = above;
      hole = parent;
    }
    this.#timers[hole] = timer;
  }

  #removeFirst(): void {
    const last = this.#timers.pop();
    if (last === undefined || this.#timers.length === 0) return;
    let hole = 0;
    for (;;) {
      const left = this.#timers[2 * hole + 1];
      const right = this.#timers[2 * hole + 2];
      if (left === undefined) break;
      const isRight = right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (isBefore(last, child)) break;
      this.#timers[hole] = child;
      hole = 2 * hole + (isRight ? 2 : 1);
    }
    this.#timers[hole] = last;
  }

  [Symbol.dispose](): void {
    Object.assign(globalThis, Object.fromEntries(this.#real));
  }
}

const isBefore = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
