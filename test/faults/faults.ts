/** `npm run faults`: writes test/FAULTS.md anew. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { type Carrier, carriersIn, faultsPage } from "./table.ts";

const TESTS = fileURLToPath(new URL("..", import.meta.url));
/** Beside the tests. */
export const PAGE = join(TESTS, "FAULTS.md");

export const carriers = (): readonly Carrier[] =>
  readdirSync(TESTS, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts") && name !== "faults/table.test.ts")
    .toSorted()
    .flatMap((name) => carriersIn(`test/${name}`, readFileSync(join(TESTS, name), "utf8")));

if (import.meta.main) writeFileSync(PAGE, faultsPage(carriers()));
