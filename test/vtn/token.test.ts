import * as fc from "fast-check";
import { expect, test } from "vitest";
import { tokenLife } from "../../src/vtn/token.ts";

test("F36: a sensible expires_in is obeyed, also a short one or one in a string, any other is an hour", () => {
  expect(tokenLife(300)).toBe(300_000);
  expect(tokenLife("300")).toBe(300_000);
  expect(tokenLife(86_400)).toBe(86_400_000);
  expect(tokenLife(5)).toBe(5000);
  expect(tokenLife(0.001)).toBe(1000);
  for (const odd of [
    undefined,
    null,
    "",
    "6 min",
    "-5",
    "0x10",
    Number.NaN,
    0,
    -1,
    1e9,
    Number.POSITIVE_INFINITY,
    {},
  ]) {
    expect(tokenLife(odd)).toBe(3_600_000);
  }
});

test("a token always lives between a second and a day", () => {
  fc.assert(
    fc.property(fc.anything(), (expiresIn) => {
      expect(tokenLife(expiresIn)).toBeGreaterThanOrEqual(1000);
      expect(tokenLife(expiresIn)).toBeLessThanOrEqual(86_400_000);
    }),
  );
});
