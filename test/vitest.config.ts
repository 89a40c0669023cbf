import { defineConfig } from "vitest/config";

import { ClosingLine } from "./support/closingLine.ts";
import { LongestFirst } from "./support/longestFirst.ts";

/** Files that apply rules to state and ports. Tests cover them as streams and processes; 100 % of branches is asked of the rules. */
const APPLYING = [
  "src/alarms/pipeline.ts",
  "src/control/decide/commissioningAccess.ts",
  "src/control/decide/evaluate.ts",
  "src/control/decide/waiting.ts",
  "src/control/holds/lifecycle.ts",
  "src/control/holds/untilEvents.ts",
  "src/control/ingest/ingest.ts",
  "src/control/ingest/pipeline.ts",
  "src/control/ingest/pollRequest.ts",
  "src/control/ingest/knownEvents.ts",
  "src/control/observe/chargerMessages.ts",
  "src/control/observe/judge.ts",
  "src/control/observe/keepLimits.ts",
  "src/control/observe/recordSilence.ts",
  "src/control/pipeline.ts",
  "src/control/ports.ts",
  "src/control/recovery.ts",
  "src/control/schedule/advance.ts",
  "src/control/send/outcome.ts",
  "src/control/send/pipeline.ts",
  "src/control/send/release.ts",
  "src/control/send/unrecorded.ts",
  "src/control/stages.ts",
  "src/control/stop.ts",
  "src/departures/pipeline.ts",
  "src/prices/pipeline.ts",
  "src/reporting/auditRows.ts",
  "src/reporting/chargerReadings.ts",
  "src/reporting/collect.ts",
  "src/reporting/compose.ts",
  "src/reporting/composer.ts",
  "src/reporting/pipeline.ts",
  "src/reporting/ports.ts",
  "src/reporting/sender.ts",
  "src/retention/pipeline.ts",
];

/** Real daemons, brokers and browsers in real time. */
const REAL_TIME = ["e2e", "page", "silences", "hostile"].map((folder) => `test/${folder}/**/*.test.ts`);

/** Everything else is quick, or in virtual time. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    // By default one of two cores stays idle; most of e2e is waiting.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", new ClosingLine()],
    coverage: {
      provider: "v8",
      include: ["src/{domain,alarms,departures,control,reporting,prices,proof,retention}/**"],
      exclude: APPLYING,
      reporter: ["text-summary", "text"],
      thresholds: { branches: 100 },
    },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...REAL_TIME, "test/bench/**", "test/gateway/**"],
          testTimeout: 180_000,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: REAL_TIME,
          testTimeout: 180_000,
          hookTimeout: 60_000,
          // A shared machine of CI stands still for seconds. Whoever develops sees the first failure.
          retry: process.env["CI"] ? 1 : 0,
        },
      },
    ],
  },
});
