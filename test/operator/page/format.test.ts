import { expect, test } from "vitest";

import { failedChange, sentence, span } from "../../../src/operator/page/format.ts";

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

test.each([
  [409, "bay-01 was not rebooted", "Nothing was changed: bay-01 was not rebooted"],
  [null, "Error: a bug", "Nothing was changed: Error: a bug"],
  [503, "nothing was changed: it cannot be stored", "Nothing was changed: it cannot be stored"],
  [503, "it is not known whether this was stored", "It is not known whether this was stored"],
  [0, "no answer", "It is not known whether this was done. Look before you repeat it: no answer"],
  [502, "HTTP 502", "It is not known whether this was done. Look before you repeat it: HTTP 502"],
])("a change that failed with status %j says what is known of it", (status, problem, shown) => {
  expect(failedChange(status, problem)).toBe(shown);
});
