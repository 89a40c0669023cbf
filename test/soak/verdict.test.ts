import * as fc from "fast-check";
import { expect, test } from "vitest";

import { type Point, verdictOn } from "./verdict.ts";

const RULE = { growth: 5, most: 200 };
/** An hour of samples, one each 15 s. */
const hour = (valueAt: (hours: number, index: number) => number): readonly Point[] =>
  Array.from({ length: 241 }, (_, index) => {
    const hours = index / 240;
    return { hours, value: valueAt(hours, index) };
  });

/** Sixteen samples up, one down. */
const saw = (index: number): number => 20 * ((index % 17) / 17);

test("a level series is flat, whatever it did while it warmed up", () => {
  const points = hour((hours) => (hours < 0.3 ? 50 + 300 * hours : 140));
  expect(verdictOn(points, RULE)).toMatchObject({ verdict: "flat", growth: 0, highest: 140, last: 140 });
});

test("a saw of garbage collections is flat, and one on a slope is not", () => {
  expect(
    verdictOn(
      hour((_, index) => 100 + saw(index)),
      RULE,
    ).verdict,
  ).toBe("flat");
  expect(
    verdictOn(
      hour((hours, index) => 100 + saw(index) + 10 * hours),
      RULE,
    ).verdict,
  ).toBe("not flat");
});

test("a leak that grows faster than the rule allows is always found under noise (F11)", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 60 }),
      fc.array(fc.double({ min: -4, max: 4, noNaN: true }), { minLength: 30 }),
      (slope, noise) => {
        const points = hour((hours, index) => 100 + slope * hours + (noise[index % noise.length] ?? 0));
        expect(verdictOn(points, { growth: 5, most: 1_000 })).toMatchObject({ verdict: "not flat" });
      },
    ),
    { numRuns: 30 },
  );
});

test("a figure over its bound, or that could not be measured, is not flat, however short the run", () => {
  expect(verdictOn([{ hours: 0, value: 201 }], RULE).verdict).toBe("not flat");
  expect(verdictOn([{ hours: 0, value: NaN }], RULE).verdict).toBe("not flat");
  expect(
    verdictOn(
      [
        { hours: 0, value: 10 },
        { hours: 0.1, value: 90 },
      ],
      RULE,
    ).verdict,
  ).toBe("too short to tell");
});
