import { expect, test } from "vitest";

import { legible } from "../../src/core/legible.ts";

test("what a partner writes makes no line of its own, and moves no terminal", () => {
  expect(legible("Evening peak \u00e6\u{1f50c}")).toBe("Evening peak \u00e6\u{1f50c}");
  expect(legible("x\n08:00:00  bay-01 released\u001b[31m\u2028\u009b")).toBe(
    "x\uFFFD08:00:00  bay-01 released\uFFFD[31m\uFFFD\uFFFD",
  );
});

test("a page of it is cut, also in the middle of a character", () => {
  expect(legible("a".repeat(300_000))).toBe(`${"a".repeat(128)}...`);
  expect(legible(`${"a".repeat(127)}\u{1f50c}`)).toBe(`${"a".repeat(127)}\uFFFD...`);
});
