import * as fc from "fast-check";
import { expect, test } from "vitest";

import { descriptorParameters, reportRanges } from "../../src/reporting/ranges.ts";
import { aDescriptor, type Counts, counts, reportSettings } from "../support/aReport.ts";

/** `[0-1]@end1`: what each report holds and when it is sent, for an event of so many intervals. */
function reports(intervals: number, ...asked: Counts): readonly string[] {
  const { count, at } = reportRanges(
    descriptorParameters(aDescriptor(counts(asked)), reportSettings()).parameters,
    intervals,
  );
  return Array.from({ length: count }, (_, k) => {
    const { first, last, edge } = at(k);
    return `[${first}-${last}]@${edge}${edge === "start" ? first : last}`;
  });
}

test.each<[example: string, intervals: number, asked: Counts, held: string]>([
  ["defaults", 4, [-1, -1, "T", -1, 1], "[0-3]@end3"],
  ["forecast", 4, [-1, -1, "F", -1, 1], "[0-3]@start0"],
  ["subset", 5, [1, 3, "T", -1, 1], "[1-3]@end3"],
  ["figure 11A", 6, [1, 4, "T", -1, 1], "[1-4]@end4"],
  ["last 5 of 10", 10, [5, -1, "T", -1, 1], "[5-9]@end9"],
  ["figure 11B", 6, [-1, -1, "T", 2, 1], "[0-1]@end1 [2-3]@end3 [4-5]@end5"],
  ["five reports", 10, [-1, -1, "T", 2, 1], "[0-1]@end1 [2-3]@end3 [4-5]@end5 [6-7]@end7 [8-9]@end9"],
  ["periodic", 6, [1, 2, "T", 2, 3], "[0-1]@end1 [2-3]@end3 [4-5]@end5"],
  ["figure 11C", 6, [0, 3, "F", 1, 4], "[0-2]@start0 [1-3]@start1 [2-4]@start2 [3-5]@start3"],
  ["rolling", 5, [0, 3, "F", 1, 3], "[0-2]@start0 [1-3]@start1 [2-4]@start2"],
  ["acknowledge at once", 1, [0, -1, "F", -1, 1], "[0-0]@start0"],
])("the standard's own example comes out as it is drawn: %s", (_, intervals, asked, held) => {
  expect(reports(intervals, ...asked).join(" ")).toBe(held);
});

test.each<[what: string, intervals: number, asked: Counts, held: string]>([
  ["the last two of five", 5, [-1, 2, "T", -1, 1], "[3-4]@end4"],
  ["more than there are", 5, [-1, 9, "T", -1, 1], "[0-4]@end4"],
  ["frequency not set is as many as are held", 6, [-1, 2, "T", -1, -1], "[0-1]@end1 [2-3]@end3 [4-5]@end5"],
  ["repeat caps", 6, [-1, 2, "T", -1, 2], "[0-1]@end1 [2-3]@end3"],
  ["all, again and again, is all once", 6, [-1, -1, "T", -1, -1], "[0-5]@end5"],
  ["the rest is reported at the end", 5, [-1, -1, "T", 2, -1], "[0-1]@end1 [2-3]@end3 [4-4]@end4"],
  ["a rest shorter than what is left out", 5, [-1, 1, "T", 3, -1], "[2-2]@end2 [4-4]@end4"],
  [
    "each looks back further than the last",
    4,
    [-1, 3, "T", 1, -1],
    "[0-0]@end0 [0-1]@end1 [0-2]@end2 [1-3]@end3",
  ],
  ["a start beyond the last interval", 4, [9, 2, "T", 2, 3], "[2-3]@end3"],
  ["from a start on, again and again", 6, [2, 1, "T", 2, -1], "[2-2]@end2 [4-4]@end4"],
  ["from a start on, only frequency set", 6, [0, -1, "T", 2, -1], "[0-1]@end1 [2-3]@end3 [4-5]@end5"],
  ["from a start on, nothing set", 6, [0, -1, "T", -1, -1], "[0-5]@end5"],
  [
    "forecasts for ever stop with the last interval",
    3,
    [0, 2, "F", 1, -1],
    "[0-1]@start0 [1-2]@start1 [2-2]@start2",
  ],
  ["a forecast of the rest", 5, [3, -1, "F", -1, 2], "[3-4]@start3"],
])("beyond the examples: %s", (_, intervals, asked, held) => {
  expect(reports(intervals, ...asked).join(" ")).toBe(held);
});

test("for any counts, each report has existing intervals, in order", () => {
  const wire = fc.oneof(fc.integer({ min: -2, max: 12 }), fc.integer());
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 96 }),
      fc.tuple(wire, wire, fc.constantFrom("T" as const, "F" as const), wire, wire),
      (intervals, asked) => {
        const { count, at } = reportRanges(
          descriptorParameters(aDescriptor(counts(asked)), reportSettings()).parameters,
          intervals,
        );
        const rounds = Array.from({ length: count }, (_, k) => at(k));
        expect(count).toBeGreaterThan(0);
        expect(count).toBeLessThanOrEqual(intervals);
        for (const { first, last } of rounds) {
          expect(0 <= first && first <= last && last < intervals).toBe(true);
        }
        const moments = rounds.map(({ first, last, edge }) => (edge === "start" ? first : last));
        expect(moments).toEqual(moments.toSorted((a, b) => a - b));
        expect(new Set(moments).size).toBe(count);
      },
    ),
  );
});
