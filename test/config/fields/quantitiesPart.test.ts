import * as fc from "fast-check";
import { expect, test } from "vitest";
import { kilowatts, quantity } from "../../../src/config/fields/quantities.ts";

test("kilowatts in the file are whole watts in the program", () => {
  expect(kilowatts(0).parse(11.04)).toBe(11_040);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 10_000, noNaN: true }), (kW) =>
      Number.isInteger(kilowatts(0).parse(kW)),
    ),
  );
});

test("a power that was probably meant in watts is refused", () => {
  expect(kilowatts(0).safeParse(150_000).error?.issues[0]?.message).toBe(
    "a number of kW from 0 to 10000, e.g. 22",
  );
});

test.each([Number.NaN, Infinity, -1, "6", null])("%s is not a current", (value) => {
  expect(quantity(0, 1000, "amperes", 32).safeParse(value).error?.issues[0]?.message).toBe(
    "a number of amperes from 0 to 1000, e.g. 32",
  );
});
