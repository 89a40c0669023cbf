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

/** Returns a function to await after each step. It yields to the event loop after `SLICE` ms. */
export function yieldToEventLoop(monotonic: () => number): () => Promise<void> {
  let began = monotonic();
  return async () => {
    if (monotonic() - began < SLICE) return;
    await new Promise((resolve) => setImmediate(resolve));
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

/** Runs the steps and yields to the event loop in between. */
export async function runCooperatively<Result>(
  steps: ResumableTask<Result>,
  monotonic: () => number,
): Promise<Result> {
  const pause = yieldToEventLoop(monotonic);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await pause();
  }
}

/** As `runCooperatively`, without a promise where the first slice of time is enough. */
export function beginCooperatively<Result>(
  steps: ResumableTask<Result>,
  monotonic: () => number,
): Result | Promise<Result> {
  const began = monotonic();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (monotonic() - began >= SLICE) break;
  }
  return new Promise((resolve) => setImmediate(resolve)).then(() => runCooperatively(steps, monotonic));
}
