import * as fc from "fast-check";
import { expect, test } from "vitest";
import { nearest } from "../../src/config/explain.ts";

const KEYS = ["pollEvery", "staleAfter", "clientId", "clientSecret"];

test.each([
  ["polEvery", "pollEvery"],
  ["poll_every", "pollEvery"],
  ["stale-after", "staleAfter"],
  ["clientid", "clientId"],
  ["cleintSecret", "clientSecret"],
])("%s probably means %s", (word, meant) => {
  expect(nearest(word, KEYS)).toBe(meant);
});

test("a name without a similar one suggests nothing", () => {
  expect(nearest("timezone", KEYS)).toBeNull();
  expect(nearest("x", [])).toBeNull();
});

test("of names that are equally near, the first is suggested", () => {
  expect(nearest("bay-03", ["bay-10", "bay-01", "bay-02"])).toBe("bay-01");
  expect(nearest("BAY-02", ["bay-01", "bay-02", "bay02"])).toBe("bay-02");
});

test("a known name always suggests itself", () => {
  fc.assert(fc.property(fc.constantFrom(...KEYS), (key) => nearest(key, KEYS) === key));
});
