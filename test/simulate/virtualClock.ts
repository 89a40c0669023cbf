import { type Instant, instant, type Millis, millis } from "../../src/domain/units.ts";

interface Timer {
  at: number;
  /** Later than `at` where it was refreshed: it rings then. */
  due: number;
  /** Of equals the one that was set first rings first. */
  order: number;
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

const cancel = (timer: Timer | null | undefined): void => {
  if (timer !== undefined && timer !== null) timer.over = true;
};

/**
 * Time that passes only when it is told to: timers and immediates of the whole process ring here, one after another,
 * in an order that depends on nothing but what was asked. Wall and monotonic time are kept apart, so that the
 * gateway's clock can be set.
 */
export class VirtualClock implements Disposable {
  /** Called after each timer or immediate with all that it caused. */
  onTurn: () => void = () => {};
  readonly #start: number;
  readonly #timers: Timer[] = [];
  #immediates: Timer[] = [];
  #elapsed = 0;
  #slept = 0;
  #asked = 0;
  #aheadBy = 0;
  #setAt = Number.NEGATIVE_INFINITY;
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

  /** How far the gateway's own clock is ahead of the true time, ms. */
  get aheadBy(): number {
    return this.#aheadBy;
  }

  set aheadBy(ms: number) {
    this.#aheadBy = ms;
    this.#setAt = this.#elapsed;
  }

  /** Time since the gateway's clock was set, ms. Infinite: it never was. */
  get sinceSet(): number {
    return this.#elapsed - this.#setAt;
  }

  /** What the gateway's wall clock shows. */
  readonly gateway = (): Instant => instant(this.truth() + this.aheadBy);
  /** What the time is. */
  readonly truth = (): Instant => instant(this.#start + this.day());
  /** True time since the start. */
  readonly day = (): Millis => millis(this.#elapsed + this.#slept);
  /** Since the start, without what was slept; never jumps. */
  readonly monotonic = (): Millis => millis(this.#elapsed);

  /** The machine sleeps: only the wall clock goes on. */
  sleep(ms: number): void {
    this.#slept += ms;
  }

  /** The process stands still: whatever is due meanwhile rings late. */
  stall(ms: number): void {
    this.#elapsed += ms;
  }

  /** Rings whatever is due up to and including that moment of the day, until `isOver`. */
  async advanceTo(moment: number, isOver: () => boolean): Promise<void> {
    const elapsed = moment - this.#slept;
    await this.#settle();
    for (let timer = this.#timers[0]; timer !== undefined && timer.at <= elapsed; timer = this.#timers[0]) {
      if (isOver()) return;
      this.#removeFirst();
      if (timer.over) continue;
      if (timer.due > timer.at) {
        this.#again(timer, timer.due);
        continue;
      }
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
    const immediate: Timer = {
      at: 0,
      due: 0,
      order: 0,
      every: null,
      ring: () => callback(...given),
      over: false,
    };
    this.#immediates.push(immediate);
    return immediate;
  }

  #set(
    callback: (...given: unknown[]) => void,
    delay: number,
    repeats: boolean,
    given: readonly unknown[],
  ): object {
    const at = this.#elapsed + delay;
    const timer = {
      every: repeats ? delay : null,
      over: false,
      at,
      due: at,
      order: (this.#asked += 1),
      ring: () => {
        callback(...given);
        if (repeats && !timer.over) this.#again(timer, this.#elapsed + delay);
      },
      refresh: () => {
        timer.due = this.#elapsed + delay;
        // One that has rung is set anew; one that has not rings later.
        if (timer.over) this.#again(timer, timer.due);
        timer.over = false;
        return timer;
      },
      ref: () => timer,
      unref: () => timer,
    };
    this.#push(timer);
    return timer;
  }

  #again(timer: Timer, at: number): void {
    timer.at = at;
    timer.due = at;
    timer.order = this.#asked += 1;
    this.#push(timer);
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
