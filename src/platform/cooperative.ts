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
