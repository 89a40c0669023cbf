import * as fc from "fast-check";
import { expect, test } from "vitest";

import { topicFault, topicLevel } from "../../../src/chargers/native/messages.ts";

const HOSTILE = [
  "",
  ".",
  "..",
  "+",
  "#",
  "a/b",
  "a+",
  "a#",
  "$SYS",
  "a\0",
  "a\n",
  "é",
  "a b",
  "x".repeat(65),
  "\ud800",
];

test.each(HOSTILE)("F67: the id %j is never a topic level", (id) => {
  expect(topicLevel(id)).toBeNull();
});

test.each(["bay-01", "A.b_c-9", "0", "_", "x".repeat(64)])("the id %j is a topic level as it is", (id) => {
  expect(topicLevel(id)).toBe(id);
});

test("F67: an accepted id never changes the number of topic levels and never holds a wildcard", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 80 }), fc.stringMatching(/^[a-z0-9._+#/$-]{0,4}$/)), (id) => {
      const level = topicLevel(id);
      if (level !== null) expect(level).toMatch(/^[^/+#$\0]+$/);
    }),
  );
});

test.each([
  ["", "empty"],
  ["$SYS/x", "$"],
  ["a/+/b", "wildcard"],
  ["a/#", "wildcard"],
  ["a/\0", "control"],
  ["a/\ud800", "Unicode"],
  ["a".repeat(65_536), "65535"],
  ["é".repeat(32_768), "65535"],
])("F67: a topic that would cost the connection is refused before the library sees it (%#)", (topic, why) => {
  expect(topicFault(topic)).toContain(why);
});

test("an ordinary topic is without fault", () => {
  expect(topicFault("setpointd/depot/chargers/bay-01/set")).toBeNull();
});
