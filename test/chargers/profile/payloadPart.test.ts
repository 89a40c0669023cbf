import { expect, test } from "vitest";

import { parsed } from "../../../src/chargers/profile/payload.ts";

test("a payload is read as JSON, null included, and what is none as nothing", () => {
  expect(parsed('{"a":[1]}')).toEqual({ a: [1] });
  expect(parsed("null")).toBeNull();
  for (const rubbish of ["", "{", "charging"]) expect(parsed(rubbish)).toBeUndefined();
});
