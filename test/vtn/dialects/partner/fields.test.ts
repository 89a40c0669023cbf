import { expect, test } from "vitest";
import { misfit, shown } from "../../../../src/vtn/dialects/partner/fields.ts";

test("a problem names the value found and the value expected", () => {
  expect(misfit("abc", "a timespan", "hh:mm:ss")).toEqual({
    problem: '"abc" is not a timespan; expected hh:mm:ss',
  });
  expect(misfit(undefined, "a timespan", "hh:mm:ss")).toEqual({
    problem: "missing; expected a timespan: hh:mm:ss",
  });
});

test("a found value is shown as JSON and shortened", () => {
  expect(shown({ a: [1] })).toBe('{"a":[1]}');
  expect(shown(Infinity)).toBe("Infinity");
  expect(shown("x".repeat(500))).toBe(`"${"x".repeat(59)}…"`);
  expect(shown(Array.from({ length: 500 }, () => 0))).toHaveLength(60);
});
