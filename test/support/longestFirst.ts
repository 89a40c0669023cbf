import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Left to the end, each of these would keep one worker busy while the other has nothing to do. */
const LONGEST = [
  "reporting/pipeline.test.ts",
  "daemon/fleet/ledSites.test.ts",
  "departures/guardedDepot.test.ts",
  "simulate/planted.test.ts",
  "simulate/days.test.ts",
  "e2e/commission.test.ts",
  "e2e/installed.test.ts",
  "soak/soak.test.ts",
  "page/page.test.ts",
  "simulate/mixed.test.ts",
  "e2e/fleet.test.ts",
  "torture/campaign.test.ts",
  "failover/failover.test.ts",
  "simulate/missed.test.ts",
  "page/actions.test.ts",
  "e2e/apply.test.ts",
  "e2e/cli.test.ts",
  "e2e/checkLive.test.ts",
  "simulate/heldDay.test.ts",
  "e2e/disk.test.ts",
  "e2e/reports.test.ts",
];

const rank = ({ moduleId }: TestSpecification): number => {
  const place = LONGEST.findIndex((name) => moduleId.endsWith(name));
  return place < 0 ? LONGEST.length : place;
};

/** A fresh clone knows no durations: the files that take minutes start first, the others as the runner has them. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's, no array's
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
