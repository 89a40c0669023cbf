import { expect, test } from "vitest";

import type { Change } from "../../src/domain/changes.ts";
import { MOST_UNSTORED, Unstored } from "../../src/store/fault.ts";
import { row } from "./sqlite/words.ts";

const silences = (count: number): readonly Change[] =>
  Array.from({ length: count }, (_, n) => row(`silence ${n}`, { kind: "silence" }));

test("a disk that refuses for days costs bounded memory: the oldest rows stay, and the number of dropped rows is recorded", () => {
  const unstored = new Unstored();
  expect(unstored.failed([...silences(MOST_UNSTORED), row("the last", { kind: "silence" })])).toBe(1);
  expect(unstored.waiting).toHaveLength(MOST_UNSTORED);
  unstored.succeeded();
  expect(unstored.waiting).toEqual([]);
});

test("a row that had to be kept is dropped like any other once it was stored", async () => {
  const unstored = new Unstored();
  const decision = row("released");
  const stored = unstored.keep([decision]);
  expect(unstored.failed([decision])).toBe(0);
  unstored.succeeded();
  await stored;
  expect(unstored.failed([decision])).toBe(1);
});
