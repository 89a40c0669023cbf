import { expect, test } from "vitest";

import { authenticate } from "../../src/store/chain.ts";

const KEY = Buffer.alloc(32, 7);

test("a code for one thing is none for another, nor for another key", () => {
  const codes = [
    authenticate(KEY, "epoch", "8"),
    authenticate(KEY, "epoch", "9"),
    authenticate(KEY, "stored body", "8"),
    authenticate(Buffer.alloc(32, 8), "epoch", "8"),
  ];
  expect(new Set(codes).size).toBe(codes.length);
  expect(authenticate(KEY, "epoch", "8")).toBe(codes[0]);
});
