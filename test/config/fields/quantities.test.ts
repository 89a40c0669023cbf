import * as fc from "fast-check";
import { expect, test } from "vitest";
import { reads, topicName, topicPrefix } from "../../../src/config/fields/quantities.ts";

test("a name of a topic level never holds a wildcard, a separator or a leading dollar sign (F67)", () => {
  const hostile = ["a/b", "+", "#", "$SYS", "", ".", "..", "a b", "a\u0000", "ä", "x".repeat(65)];
  expect(hostile.filter((name) => topicName.safeParse(name).success)).toEqual([]);
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      (name) => !topicName.safeParse(name).success || /^[\w-][\w.-]*$/.test(name),
    ),
  );
});

test("a prefix may have several levels, but no empty one", () => {
  const prefixes = ["setpointd", "depot/charging", "/depot", "depot/", "a//b", "a/#", "+/a"];
  expect(prefixes.filter((prefix) => topicPrefix.safeParse(prefix).success)).toEqual([
    "setpointd",
    "depot/charging",
  ]);
});

test("the sentence states the right value, also for a value that is not text", () => {
  const even = reads(
    (text) => (text.length % 2 === 0 ? text : null),
    (text) => `even, not ${text.length}`,
  );
  expect(even.safeParse("abc").error?.issues[0]?.message).toBe("even, not 3");
  expect(even.safeParse(3).error?.issues[0]?.message).toBe("even, not 0");
});
