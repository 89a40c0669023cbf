import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { nearestTests } from "./nearest.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const nearest = nearestTests(ROOT);

test("the mirror test comes first and alone", () => {
  expect(nearest("src/control/decide/evaluate.ts")[0]).toEqual(["test/control/decide/evaluate.test.ts"]);
});

test("a file without a mirror test is tried with the tests that import it, then with those that only reach it", () => {
  const groups = nearest("src/control/stages.ts");
  expect(groups[0]).toContain("test/control/recovery.test.ts");
  expect(groups[0]).not.toContain("test/control/clockMovedBack.test.ts");
  expect(groups[1]).toContain("test/control/clockMovedBack.test.ts");
});

test("a test of another room that imports the file is near; one that only reaches it is not, unless there is no other", () => {
  expect(nearest("src/store/chain.ts")[1]).toContain("test/proof/verify.test.ts");
  expect(nearest("src/store/sqlite/connection.ts").flat()).not.toContain("test/control/control.test.ts");
  expect(nearest("src/store/sqlite/movedRows.ts").flat()).toContain("test/daemon/moveState.test.ts");
});

test("a quick try has no test that only reaches the file", () => {
  const quick = nearestTests(ROOT, 2);
  expect(quick("src/store/sqlite/verify.ts")).toEqual([["test/store/sqlite/verify.test.ts"]]);
  expect(quick("src/store/sqlite/movedRows.ts").flat()).toContain("test/daemon/moveState.test.ts");
});

test("no test is run twice for one mutant, and no campaign", () => {
  for (const file of [
    "src/control/ingest/ingest.ts",
    "src/store/sqlite/disk.ts",
    "src/control/decide/limits.ts",
  ]) {
    const tests = nearest(file).flat();
    expect(tests).toEqual([...new Set(tests)]);
    expect(tests.filter((test) => /^test\/(simulate|torture|e2e|page)\//.test(test))).toEqual([]);
  }
});
