import * as fc from "fast-check";
import { expect, test } from "vitest";
import { minutes } from "../../src/domain/units.ts";
import { bucket, bucketPerAddress, hourlyBudget } from "../../src/vtn/budget.ts";

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

test("that a limit is spent is said once, and again only after an hour without a refusal", () => {
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

test("a bucket allows its burst, then its pace", () => {
  let now = 0;
  const take = bucket({ perSecond: 2, burst: 3 }, () => now);
  expect([take(), take(), take(), take()]).toEqual([true, true, true, false]);
  now = 500;
  expect([take(), take()]).toEqual([true, false]);
});

test("one address does not use up the pace of another, and forgotten addresses cost no memory", () => {
  const take = bucketPerAddress({ perSecond: 1, burst: 1 }, () => 0, 2);
  expect([take("a"), take("a"), take("b"), take("b")]).toEqual([true, false, true, false]);
  expect(take("c")).toBe(true);
  // `a` was the oldest of three: it starts anew.
  expect([take("a"), take("c")]).toEqual([true, false]);
});
