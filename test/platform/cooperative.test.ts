import { expect, test } from "vitest";

import { runToEnd } from "../../src/platform/cooperative.ts";

test("steps taken at once are all taken, in order", () => {
  const taken: number[] = [];
  const result = runToEnd(
    (function* () {
      for (let step = 1; step <= 3; step += 1) {
        taken.push(step);
        yield;
      }
      return "done";
    })(),
  );
  expect([result, taken]).toEqual(["done", [1, 2, 3]]);
});
