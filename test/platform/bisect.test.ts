import * as fc from "fast-check";
import { expect, test } from "vitest";
import { firstIndex, firstWhere } from "../../src/platform/collections.ts";

test("the first entry that holds is found in any sorted list, or the end where none does", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.integer(), (numbers, bound) => {
      const sorted = numbers.toSorted((a, b) => a - b);
      const found = sorted.findIndex((number) => number >= bound);
      expect(firstWhere(sorted, (number) => number >= bound)).toBe(found === -1 ? sorted.length : found);
    }),
  );
});

test("a search over more than any list could hold takes no time", () => {
  expect(firstIndex(2 ** 40, (index) => index >= 123_456_789_012)).toBe(123_456_789_012);
});
