import { expect, test } from "vitest";

import { messageOf } from "../../src/platform/errors.ts";

test("a caught value has a text, also where a library throws no Error", () => {
  expect(messageOf(new TypeError("no such file"))).toBe("no such file");
  expect(messageOf("closed")).toBe("closed");
  expect(messageOf(null)).toBe("null");
  expect(messageOf({ toString: () => "code 5" })).toBe("code 5");
});
