import { defineConfig } from "vitest/config";

import { ClosingLine } from "../support/closingLine.ts";

/** Packs, and installs into a clean Debian: minutes, root and the Debian archive are needed. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/gateway/**/*.test.ts"],
    reporters: ["default", new ClosingLine()],
    testTimeout: 300_000,
    hookTimeout: 600_000,
  },
});
