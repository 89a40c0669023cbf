import { expect, test } from "vitest";

import {
  counted,
  formatMinutes,
  listed,
  sanitizeForLog,
  oneLine,
  printable,
} from "../../src/platform/text.ts";

test("a text of the partner starts no line of its own, and moves no terminal", () => {
  expect(sanitizeForLog("Evening peak \u00e6\u{1f50c}")).toBe("Evening peak \u00e6\u{1f50c}");
  expect(sanitizeForLog("x\n08:00:00  bay-01 released\u001b[31m\u2028\u009b")).toBe(
    "x\uFFFD08:00:00  bay-01 released\uFFFD[31m\uFFFD\uFFFD",
  );
});

test("a page of it is cut, also in the middle of a character", () => {
  expect(sanitizeForLog("a".repeat(300_000))).toBe(`${"a".repeat(128)}...`);
  expect(sanitizeForLog(`${"a".repeat(127)}\u{1f50c}`)).toBe(`${"a".repeat(127)}\uFFFD...`);
});

const HOSTILE = "a\u001b]0;title\u0007b\nc\u009b31m\u202ed\u200be\ud800f\u2028g\u{e0001}h";

test("foreign text stays on its line, and no terminal obeys it", () => {
  expect(oneLine(HOSTILE)).toBe(
    "a\\u001b]0;title\\u0007b\\u000ac\\u009b31m\\u202ed\\u200be\\ud800f\\u2028g\\udb40\\udc01h",
  );
  expect(sanitizeForLog("a\u202eb")).toBe("a\uFFFDb");
  for (const fine of ["Bus 214, \u00c6r\u00f8", "\u6771\u4eac"]) expect(oneLine(fine)).toBe(fine);
});

test("text of our own keeps its lines and tabs, and JSON its meaning", () => {
  expect(printable("a\n\tb\u001b")).toBe("a\n\tb\\u001b");
  expect(printable("plain\n")).toBe("plain\n");
  const json = JSON.stringify({ name: HOSTILE });
  expect(JSON.parse(printable(json))).toEqual({ name: HOSTILE });
  expect(printable(json)).not.toMatch(/[\u009b\u202e]/);
});

test("a long list of names says how many it leaves out", () => {
  expect(listed(["EV-1", "EV-2"], 2)).toBe("EV-1, EV-2");
  expect(listed(["EV-1", "EV-2", "EV-3"], 2)).toBe("EV-1, EV-2 and 1 more");
  expect(listed(["EV-1"], 2, 9)).toBe("EV-1 and 8 more");
  expect(listed([], 2)).toBe("");
});

test("an hour and more is written as hours and minutes", () => {
  expect([0, 59, 60, 125].map(formatMinutes)).toEqual(["0 min", "59 min", "1 h 0 min", "2 h 5 min"]);
});

test("one thing is singular", () => {
  expect([0, 1, 2].map((count) => counted(count, "gap"))).toEqual(["0 gaps", "1 gap", "2 gaps"]);
});
