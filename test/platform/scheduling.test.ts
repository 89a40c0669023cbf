import * as fc from "fast-check";
import { expect, test } from "vitest";

import { instant } from "../../src/domain/units.ts";
import { delayUntil } from "../../src/platform/scheduling.ts";

const MINUTE = 60_000;

test("an alarm without a next moment still wakes every minute", () => {
  expect(delayUntil(undefined, instant(5))).toBe(MINUTE);
});

test("no nap is ever longer than a minute, past the moment, or negative, up to the year 9999 (F26)", () => {
  const moment = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }).map(instant);
  fc.assert(
    fc.property(moment, moment, (due, now) => {
      const span = delayUntil(due, now);
      expect(span).toBeGreaterThanOrEqual(0);
      expect(span).toBeLessThanOrEqual(MINUTE);
      if (due > now) expect(now + span).toBeLessThanOrEqual(due);
    }),
  );
});
