import { setTimeout as sleep } from "node:timers/promises";

/** Work that can be suspended after any step. */
export type ResumableTask<Result> = Generator<void, Result>;

/** Runs all steps without a break. */
export function runToEnd<Result>(steps: ResumableTask<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Longest run before yielding, ms. Long work that is not urgent must not delay chargers or the partner. */
const SLICE = 10;

/** Turns of the event loop for the work of one program: one slice in each turn, however many tasks wait. */
class SharedTurns {
  readonly #waiting: (() => void)[] = [];

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(() => this.#resumeOne());
    });
  }

  #resumeOne(): void {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(() => this.#resumeOne());
  }
}

/** By clock: tasks of one program have the same. */
const sharedTurns = new WeakMap<() => number, SharedTurns>();

function turnsOf(monotonic: () => number): SharedTurns {
  const turns = sharedTurns.get(monotonic) ?? new SharedTurns();
  sharedTurns.set(monotonic, turns);
  return turns;
}

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Time that this process has waited for input. While it is busy, what arrives lies unread, and no other side is slow. */
export const idleMs = (): number => performance.eventLoopUtilization().idle;

/** A process that waited as long, ms, had read all that was there, also over a network. */
const WAITED = 50;
const READS_EVERY = 250;
/** A process that is never idle gives up after 30 s. */
const MOST_READS = 120;

/**
 * Resolves once everything that had arrived is read. After a standstill of this process its timers come first, and
 * answers lie in the sockets, behind all that came before them: many megabytes at a large site.
 */
export async function arrivedIsRead(): Promise<void> {
  const idleBefore = idleMs();
  for (let reads = 0; reads < MOST_READS && idleMs() - idleBefore < WAITED; reads += 1)
    await sleep(READS_EVERY);
}

/**
 * Returns a function to await after each step. It yields to the event loop after `SLICE` ms. Several such tasks take
 * turns, so that together they hold up the event loop no longer than one.
 */
export function yieldToEventLoop(monotonic: () => number): () => Promise<void> {
  const turns = turnsOf(monotonic);
  return yieldingBy(monotonic, () => turns.next());
}

function yieldingBy(monotonic: () => number, next: () => Promise<void>): () => Promise<void> {
  let began = monotonic();
  return async () => {
    if (monotonic() - began < SLICE) return;
    await next();
    began = monotonic();
  };
}

/** Values between two steps: a step after each would cost more than most work. */
const VALUES_A_STEP = 256;

/** Handles the values one after another, with a step after every few of them. */
export function* inSteps<Value>(values: Iterable<Value>, each: (value: Value) => void): ResumableTask<void> {
  let count = 0;
  for (const value of values) {
    each(value);
    count += 1;
    if (count % VALUES_A_STEP === 0) yield;
  }
}

/** Runs the steps and yields to the event loop in between, alternating with other tasks. */
export const runCooperatively = <Result>(
  steps: ResumableTask<Result>,
  monotonic: () => number,
): Promise<Result> => runPausing(steps, yieldToEventLoop(monotonic));

/** `runCooperatively` with a slice in every turn: control waits for it. */
export const runUrgently = <Result>(steps: ResumableTask<Result>, monotonic: () => number): Promise<Result> =>
  runPausing(steps, yieldingBy(monotonic, nextTurn));

/** Runs the steps as a part of longer work that has a `pause` of its own. */
export async function runPausing<Result>(
  steps: ResumableTask<Result>,
  pause: () => Promise<void>,
): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await pause();
  }
}

/** `runUrgently` without a promise, where the first slice of time is enough. */
export function beginUrgently<Result>(
  steps: ResumableTask<Result>,
  monotonic: () => number,
): Result | Promise<Result> {
  const began = monotonic();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (monotonic() - began >= SLICE) break;
  }
  return nextTurn().then(() => runUrgently(steps, monotonic));
}

/** Does the work for all, at most so many at the same time. */
export async function inParallel<T>(
  atOnce: number,
  all: readonly T[],
  work: (each: T) => Promise<void>,
): Promise<void> {
  const rest = all.values();
  const worker = async (): Promise<void> => {
    for (const each of rest) await work(each);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Gives a place back. Once: later calls change nothing. */
type Leave = () => void;

/**
 * Places for work that is under way, shared by all sites of one process. Each turn of the event loop handles all that came
 * back: without a limit, thousands of sites make it longer than a keepalive. A place counts for `countsForMs` at most, so
 * work that hangs delays no other.
 */
export class SharedPlaces {
  readonly #countsFor: number;
  #free: number;
  // Sets, as the first of thousands is taken again and again.
  readonly #urgent = new Set<(leave: Leave) => void>();
  readonly #others = new Set<(leave: Leave) => void>();

  constructor(most: number, countsForMs: number) {
    this.#free = most;
    this.#countsFor = countsForMs;
  }

  /** Takes a place, at once or when one is free. Urgent work goes before all other that waits. */
  enter(isUrgent: boolean): Leave | Promise<Leave> {
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#taken();
    }
    const { promise, resolve } = Promise.withResolvers<Leave>();
    (isUrgent ? this.#urgent : this.#others).add(resolve);
    return promise;
  }

  #taken(): Leave {
    let isTaken = true;
    const leave = (): void => {
      if (!isTaken) return;
      isTaken = false;
      clearTimeout(timer);
      this.#handOn();
    };
    const timer = setTimeout(leave, this.#countsFor).unref();
    return leave;
  }

  #handOn(): void {
    for (const waiting of [this.#urgent, this.#others])
      for (const next of waiting) {
        waiting.delete(next);
        next(this.#taken());
        return;
      }
    this.#free += 1;
  }
}

/** Room in memory that all sites of one process share. */
export class SharedRoom {
  readonly most: number;
  #taken = 0;

  constructor(most: number) {
    this.most = most;
  }

  /** The part of one site. Its disposal gives it back for good: a list may still be planned while the site stops. */
  part() {
    let own = 0;
    let isGivenBack = false;
    const take = (size: number): void => {
      if (isGivenBack) return;
      this.#taken += size - own;
      own = size;
    };
    const giveBack = (): void => {
      take(0);
      isGivenBack = true;
    };
    return { most: this.most, take, free: () => this.most - this.#taken, [Symbol.dispose]: giveBack };
  }
}

export type RoomPart = ReturnType<SharedRoom["part"]>;

/** Values in batches of this size in total. A single value may be larger. */
export function inBatches<T>(
  values: readonly T[],
  most: number,
  sizeOf: (value: T) => number,
): readonly (readonly T[])[] {
  const batches: T[][] = [];
  let free = 0;
  for (const value of values) {
    const size = sizeOf(value);
    const last = batches.at(-1);
    if (last === undefined || size > free) {
      batches.push([value]);
      free = most - size;
    } else {
      last.push(value);
      free -= size;
    }
  }
  return batches;
}

/** Lets a number of tasks run at a time. The others wait without a deadline, in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
