import { expect, test } from "vitest";

import { CommitStats } from "../../../src/store/fault.ts";

test("a series of failures is dated by its first, and ends with the next success", () => {
  let tick = 0;
  const stats = new CommitStats(() => tick);
  stats.count(3, null);
  expect(stats.view()).toEqual({ failures: 0, longestCommitMs: 3, failing: null });
  stats.count(2, "database or disk is full");
  tick = 5_000;
  stats.count(1, "disk I/O error");
  expect(stats.view()).toEqual({
    failures: 2,
    longestCommitMs: 3,
    failing: { reason: "disk I/O error", forMs: 5_000 },
  });
  stats.count(1, null);
  expect(stats.view().failing).toBeNull();
});
