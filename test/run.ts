/**
 * `npm test`, after the static checks: all suites. Branches are counted in the unit tests alone: V8 counts them at two
 * thirds of the speed. Ends with 1 if a test fails or a branch of the rules is not covered.
 */
import { startVitest } from "vitest/node";

import { ClosingLine } from "./support/closingLine.ts";

const config = new URL("vitest.config.ts", import.meta.url).pathname;
const reporters = ["default", new ClosingLine()];

const parts = [
  { project: ["unit", "unitAlone"], coverage: { enabled: true } },
  { project: ["long", "longAlone", "e2e", "e2eAlone", "hostile"], coverage: { enabled: false } },
];
for (const part of parts) {
  const vitest = await startVitest("test", [], { config, run: true, watch: false, reporters, ...part });
  await vitest.close();
}
