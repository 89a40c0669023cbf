import * as fc from "fast-check";
import { expect, test } from "vitest";

import { minutes } from "../../src/domain/units.ts";
import { hourlyBudget } from "../../src/vtn/http.ts";

test("never more than the limit in any sliding hour, whatever the times of asking", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_200_000 }), { maxLength: 60 }), (pauses) => {
      let now = 0;
      const allowed = hourlyBudget(5, () => now);
      const taken: number[] = [];
      for (const pause of pauses) {
        now += pause;
        if (allowed()) taken.push(now);
      }
      for (const at of taken) {
        expect(taken.filter((other) => other > at - 3_600_000 && other <= at).length).toBeLessThanOrEqual(5);
      }
    }),
  );
});

test("a spent limit is logged once, and again only after an hour without a refusal", () => {
  let now = 0;
  let said = 0;
  const allowed = hourlyBudget(
    1,
    () => now,
    () => (said += 1),
  );
  for (; now < minutes(300); now += minutes(1)) allowed();
  expect(said).toBe(1);
  now += minutes(60);
  expect([allowed(), allowed(), said]).toEqual([true, false, 2]);
});
