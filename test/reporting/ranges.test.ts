import { expect, test } from "vitest";
import { descriptorParameters, isAcknowledgement } from "../../src/reporting/ranges.ts";
import { aDescriptor, type Counts, counts, reportSettings } from "../support/aReport.ts";

/** `start count step repeat`, and what was odd. */
function said(...asked: Counts): string {
  const { parameters: meant, flags } = descriptorParameters(aDescriptor(counts(asked)), reportSettings());
  return [`${meant.start} ${meant.count} ${meant.step} ${meant.repeat}`, ...flags].join("; ");
}

const acknowledges = (...asked: Counts): boolean =>
  isAcknowledgement(descriptorParameters(aDescriptor(counts(asked)), reportSettings()).parameters);

test("absent, -1 and four zeros all mean that nothing is set", () => {
  expect(said(null, null, "T", null, null)).toBe("last all null 1");
  expect(said(-1, -1, "T", -1, 1)).toBe("last all null 1");
  expect(said(0, 0, "T", 0, 0)).toBe("last all null 1");
});

test("zero is not set for each count but the start, which is the first interval beside any other count", () => {
  expect(said(0, 4, "T", 0, 0)).toBe("0 4 null 1");
  expect(said(0, 0, "T", 2, 0)).toBe("0 all 2 1");
  expect(said(0, 0, "T", 0, 3)).toBe("0 all null 3");
});

test("repeat -1 is endless", () => {
  expect(said(0, 1, "T", 1, -1)).toBe("0 1 1 forever");
});

test("other negative numbers mean nothing, and get a note", () => {
  expect(said(-2, -3, "T", -4, -5)).toBe(
    "last all null 1; startInterval -2 means nothing: taken as not set; " +
      "numIntervals -3 means nothing: taken as not set; frequency -4 means nothing: taken as not set; " +
      "repeat -5 means nothing: taken as not set",
  );
});

test("counts without a meaning are cut, with a note", () => {
  const most = Number.MAX_SAFE_INTEGER;
  expect(said(most, 97, "T", 100_001, most)).toBe(
    `100000 96 100000 100000; startInterval ${most} is taken as 100000; numIntervals 97 is taken as 96; ` +
      `frequency 100001 is taken as 100000; repeat ${most} is taken as 100000`,
  );
});

test("a forecast of everything, once and from the first interval on, acknowledges the event", () => {
  expect(acknowledges(0, -1, "F", -1, 1)).toBe(true);
  const others: readonly Counts[] = [
    [0, -1, "T", -1, 1],
    [-1, -1, "F", -1, 1],
    [0, 2, "F", -1, 1],
    [0, -1, "F", 1, 1],
    [0, -1, "F", -1, 2],
    [0, 0, "F", 0, 0],
  ];
  expect(others.filter((asked) => acknowledges(...asked))).toEqual([]);
});
