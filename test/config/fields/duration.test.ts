import { expect, test } from "vitest";
import { duration } from "../../../src/config/fields/quantities.ts";

test("a duration outside its bounds is refused, and bounds are inclusive", () => {
  const poll = duration("1s", "1h");
  expect(["1s", "1h", "3600s", "999ms", "61m"].map((text) => poll.safeParse(text).success)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});
