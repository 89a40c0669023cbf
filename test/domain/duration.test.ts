import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseDuration } from "../../src/domain/units.ts";

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["10m", 600_000],
  ["2h", 7_200_000],
  ["7d", 604_800_000],
  ["0s", 0],
])("%s is understood", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(["", "60", "1.5h", "-1s", "1 s", "1S", "1w", "9999999999s", "s"])("%j is no duration", (text) => {
  expect(parseDuration(text)).toBeNull();
});

test("reading a duration never throws, and a duration is never negative", () => {
  fc.assert(fc.property(fc.string(), (text) => (parseDuration(text) ?? 0) >= 0));
});
