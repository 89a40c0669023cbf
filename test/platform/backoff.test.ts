import * as fc from "fast-check";
import { expect, test } from "vitest";

import { minutes, seconds } from "../../src/domain/units.ts";
import { backoff } from "../../src/platform/clock.ts";

test("the pause after a failure is never negative and never above its ceiling, however many failed", () => {
  fc.assert(
    fc.property(fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (failures, fraction) => {
      const pause = backoff(failures, fraction, seconds(1), minutes(5));
      expect(pause).toBeGreaterThanOrEqual(0);
      expect(pause).toBeLessThanOrEqual(Math.min(minutes(5), 1000 * 2 ** failures));
    }),
  );
});

test("gateways that failed together do not retry together: the pause is the random share of its ceiling", () => {
  expect([0, 0.25, 0.5, 0.999].map((fraction) => backoff(4, fraction, seconds(1), minutes(5)))).toEqual([
    0, 4_000, 8_000, 15_984,
  ]);
});

test("the ceiling doubles from one failure to the next", () => {
  expect([0, 1, 2, 3, 20].map((failures) => backoff(failures, 1, seconds(1), minutes(5)))).toEqual([
    1_000, 2_000, 4_000, 8_000, 300_000,
  ]);
});
