import * as fc from "fast-check";
import { expect, test } from "vitest";

import { brokerTiming } from "../../../src/chargers/broker/createClient.ts";
import { backoff } from "../../../src/platform/clock.ts";

const { backoffFloor, backoffCeiling } = brokerTiming;

test("the back-off is full jitter below a ceiling that doubles from 0.5 s to 30 s", () => {
  expect([0, 1, 5, 6, 40, 5000].map((attempt) => backoff(attempt, 1, backoffFloor, backoffCeiling))).toEqual([
    500, 1000, 16_000, 30_000, 30_000, 30_000,
  ]);
  fc.assert(
    fc.property(fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, fraction) => {
      const nap = backoff(attempt, fraction, backoffFloor, backoffCeiling);
      expect(nap).toBeGreaterThanOrEqual(0);
      expect(nap).toBeLessThanOrEqual(30_000);
    }),
  );
});
