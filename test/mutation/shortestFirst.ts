import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The first failure ends a run: the files that took least time in earlier runs go first, long ones are often spared. */
export class ShortestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's, no array's
    return (await super.sort(files)).toReversed();
  }
}
