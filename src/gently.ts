import type { Steps } from "./core/steps.ts";

/** The loop is given back after this long, ms: chargers do not wait for a proof or a look at the whole record. */
const TURN = 10;

/** A few steps at a time: for the daemon. */
export async function gently<Result>(steps: Steps<Result>, monotonic: () => number): Promise<Result> {
  for (let began = monotonic(); ;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (monotonic() - began < TURN) continue;
    await new Promise((resolve) => setImmediate(resolve));
    began = monotonic();
  }
}
