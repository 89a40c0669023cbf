import { defineConfig } from "vitest/config";

import { ClosingLine } from "./support/closingLine.ts";
import { LongestFirst } from "./support/longestFirst.ts";

/** Everything but e2e is in-process and quick; e2e starts real daemons and brokers. */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    // By default one of two cores stays idle; most of e2e is waiting.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", new ClosingLine()],
    coverage: {
      provider: "v8",
      include: ["src/core/**"],
      reporter: ["text-summary", "text"],
      thresholds: { branches: 100 },
    },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/bench/**", "test/gateway/**"],
          testTimeout: 180_000,
        },
      },
      {
        extends: true,
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 180_000, hookTimeout: 60_000 },
      },
    ],
  },
});
