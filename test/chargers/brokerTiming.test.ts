import * as fc from "fast-check";
import { expect, test } from "vitest";
import { backoff, brokerTiming } from "../../src/chargers/brokerTiming.ts";

test("the back-off is full jitter below a ceiling that doubles from 0.5 s to 30 s", () => {
  expect([0, 1, 5, 6, 40, 5000].map((attempt) => backoff(brokerTiming, attempt, 1))).toEqual([
    500, 1000, 16_000, 30_000, 30_000, 30_000,
  ]);
  fc.assert(
    fc.property(fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, fraction) => {
      const nap = backoff(brokerTiming, attempt, fraction);
      expect(nap).toBeGreaterThanOrEqual(0);
      expect(nap).toBeLessThanOrEqual(30_000);
    }),
  );
});
