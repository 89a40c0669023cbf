import { expect, test } from "vitest";

import type { Change } from "../../src/domain/changes.ts";
import { CommitStats, MOST_UNSTORED, Unstored } from "../../src/store/fault.ts";
import { row } from "./sqlite/words.ts";

const silences = (count: number): readonly Change[] =>
  Array.from({ length: count }, (_, n) => row(`silence ${n}`, { kind: "silence" }));

test("a disk that refuses for days costs bounded memory: the oldest rows stay, and the number of dropped rows is recorded", () => {
  const unstored = new Unstored();
  expect(unstored.failed([...silences(MOST_UNSTORED), row("the last", { kind: "silence" })])).toBe(1);
  expect(unstored.waiting).toHaveLength(MOST_UNSTORED);
  unstored.succeeded(unstored.waiting);
  expect(unstored.waiting).toEqual([]);
});

test("a row that had to be kept and found no room is not remembered", () => {
  const unstored = new Unstored();
  const decision = row("released");
  void unstored.keep([decision]);
  expect(unstored.failed([...silences(MOST_UNSTORED), decision])).toBe(1);
  expect(unstored.failed([decision])).toBe(1);
});

test("a row that had to be kept is dropped like any other once it was stored", async () => {
  const unstored = new Unstored();
  const decision = row("released");
  const stored = unstored.keep([decision]);
  expect(unstored.failed([decision])).toBe(0);
  unstored.succeeded([decision]);
  await stored;
  expect(unstored.failed([decision])).toBe(1);
});

test("a row that had to be kept, and was staged during a commit, is kept on when that commit succeeds", async () => {
  const unstored = new Unstored();
  const [first, second] = [row("sent"), row("released")];
  let isStored = false;
  void unstored.keep([first]);
  void unstored.keep([second]).then(() => (isStored = true));
  unstored.succeeded([first]);
  expect(unstored.failed([second])).toBe(0);
  await Promise.resolve();
  expect(isStored).toBe(false);
  unstored.succeeded([second]);
  await Promise.resolve();
  expect(isStored).toBe(true);
});

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
