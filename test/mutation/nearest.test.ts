import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { nearestTests } from "./nearest.ts";

const nearest = nearestTests(fileURLToPath(new URL("../..", import.meta.url)));

test("the mirror test comes first and alone", () => {
  expect(nearest("src/control/decide/evaluate.ts")[0]).toEqual(["test/control/decide/evaluate.test.ts"]);
});

test("a file without a mirror test is tried with the tests that import it, then with those that only reach it", () => {
  const groups = nearest("src/control/stages.ts");
  expect(groups[0]).toEqual(["test/control/control.test.ts", "test/control/recovery.test.ts"]);
  expect(groups[1]).toContain("test/control/decide/evaluate.test.ts");
});

test("no test is run twice for one mutant, and none of another part of the program", () => {
  for (const file of [
    "src/control/ingest/ingest.ts",
    "src/store/sqlite/disk.ts",
    "src/control/decide/limits.ts",
  ]) {
    const tests = nearest(file).flat();
    expect(tests).toEqual([...new Set(tests)]);
    expect(tests.filter((test) => !/^test\/(control|store|scenarios)\//.test(test))).toEqual([]);
  }
});
