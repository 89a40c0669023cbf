/** Work that can be left at any step and gone on with. */
export type ResumableTask<Result> = Generator<void, Result>;

/** All steps, one after the other: for who has nothing else to do. */
export function runToEnd<Result>(steps: ResumableTask<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The loop is given back after this long, ms: neither chargers nor the partner wait for what is long and not urgent. */
const TURN = 10;

/** To be waited for after each step of long work: gives the loop a turn, but only once this one was held for long enough. */
export function yieldToEventLoop(monotonic: () => number): () => Promise<void> {
  let began = monotonic();
  return async () => {
    if (monotonic() - began < TURN) return;
    await new Promise((resolve) => setImmediate(resolve));
    began = monotonic();
  };
}

/** A few steps at a time: for the daemon. */
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
