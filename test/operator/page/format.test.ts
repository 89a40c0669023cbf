import { expect, test } from "vitest";

import { sentence, span } from "../../../src/operator/page/format.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test.each([
  [4 * SECOND, "4 s"],
  [90 * SECOND, "90 s"],
  [12 * MINUTE, "12 min"],
  [3 * HOUR + 20 * MINUTE, "3 h 20 min"],
  [3 * HOUR - 20 * SECOND, "3 h"],
  [-3 * HOUR, "3 h"],
  [60 * HOUR, "3 d"],
])("a span of %d ms is shown as %s", (ms, words) => {
  expect(span(ms)).toBe(words);
});

test("a message begins a sentence, and an id keeps its spelling", () => {
  expect(sentence("the broker cannot be reached")).toBe("The broker cannot be reached");
  expect(sentence("bay-06 is offline")).toBe("bay-06 is offline");
});
