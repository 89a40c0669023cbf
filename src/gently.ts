import type { Steps } from "./core/steps.ts";
import { breather } from "./flow/breather.ts";

/** A few steps at a time: for the daemon. */
export async function gently<Result>(steps: Steps<Result>, monotonic: () => number): Promise<Result> {
  const pause = breather(monotonic);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await pause();
  }
}
