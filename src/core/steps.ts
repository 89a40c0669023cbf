/** Work that can be left at any step and gone on with. */
export type Steps<Result> = Generator<void, Result>;

/** All steps, one after the other: for who has nothing else to do. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
