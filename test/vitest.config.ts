import { globSync } from "node:fs";
import { defineConfig } from "vitest/config";

import { ClosingLine } from "./support/closingLine.ts";
import { LongestFirst } from "./support/longestFirst.ts";
import { replacesGlobals } from "./support/replacesGlobals.ts";

/** Files that apply rules to state and ports. Tests cover them as streams and processes; 100 % of branches is asked of the rules. */
const APPLYING = [
  "src/alarms/pipeline.ts",
  "src/control/decide/commissioningAccess.ts",
  "src/control/decide/evaluate.ts",
  "src/control/decide/evaluationQueue.ts",
  "src/control/decide/freeing.ts",
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
  "src/control/stage.ts",
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

const testsOf = (folders: readonly string[]): string[] =>
  folders.map((folder) => `test/${folder}/**/*.test.ts`);

/** Real daemons, brokers and browsers in real time. Most of it is waiting: five files at once keep two cores busy. */
const REAL_TIME = testsOf(["e2e", "failover", "ocpp", "page", "silences", "torture"]);
/** As REAL_TIME, with bounds on delays: a busy machine fails them. */
const HOSTILE = testsOf(["hostile"]);
/** Whole days in virtual time, databases, and short runs of the other campaigns. */
const LONG = testsOf(["fuzz", "powercut", "simulate", "soak", "store"]);

const ROOT = new URL("..", import.meta.url).pathname;
const ALONE = globSync("test/**/*.test.ts", { cwd: ROOT }).filter((file) => replacesGlobals(ROOT + file));

// A shared machine of CI stands still for seconds. Whoever develops sees the first failure.
const retry = process.env["CI"] ? 1 : 0;

/**
 * Two projects of these files. Those of the first share the modules that their process has loaded, which is half of the
 * processor time of a short one. Those of the second, with "Alone" in its name, replace timers or other globals.
 */
function twoProjects(
  name: string,
  { include, exclude = [], ...options }: { include: string[]; exclude?: string[]; [option: string]: unknown },
) {
  const files = globSync(include, { cwd: ROOT, exclude });
  const alone = files.filter((file) => ALONE.includes(file));
  const shared = files.filter((file) => !ALONE.includes(file));
  return [
    { extends: true as const, test: { ...options, name, include: shared, isolate: false } },
    { extends: true as const, test: { ...options, name: `${name}Alone`, include: alone } },
  ];
}

export default defineConfig({
  test: {
    root: ROOT,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", new ClosingLine()],
    // A bound on what hangs. On a slow machine whole days in virtual time take minutes.
    testTimeout: 300_000,
    hookTimeout: 60_000,
    coverage: {
      provider: "v8",
      include: ["src/{domain,alarms,departures,control,reporting,prices,proof,retention}/**"],
      exclude: APPLYING,
      reporter: ["text-summary", "text"],
      thresholds: { branches: 100 },
    },
    projects: [
      // The quick ones, and those in virtual time. `run.ts` counts branches in them alone.
      ...twoProjects("unit", {
        include: ["test/**/*.test.ts"],
        exclude: [...REAL_TIME, ...HOSTILE, ...LONG, ...testsOf(["bench", "gateway"])],
        // Some of them wait: a third file at once keeps two cores busy.
        maxWorkers: 3,
        sequence: { groupOrder: 0 },
      }),
      ...twoProjects("long", { include: LONG, maxWorkers: 5, sequence: { groupOrder: 1 } }),
      ...twoProjects("e2e", { include: REAL_TIME, retry, maxWorkers: 5, sequence: { groupOrder: 1 } }),
      {
        extends: true,
        test: { name: "hostile", include: HOSTILE, retry, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
