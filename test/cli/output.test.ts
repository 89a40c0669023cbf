import { expect, test } from "vitest";

import { readMoment } from "../../src/cli/output.ts";
import { instant, iso } from "../../src/domain/units.ts";

const OSLO = "Europe/Oslo";
/** 00:30 in Oslo on the 22nd. */
const NOW = instant(Date.parse("2026-11-21T23:30:00Z"));

test.each([
  ["2026-11-21T05:00:00Z", "2026-11-21T05:00:00.000Z"],
  ["2026-11-21T05:00:00+03:00", "2026-11-21T02:00:00.000Z"],
  ["2026-11-21T05:00", "2026-11-21T04:00:00.000Z"],
  ["2026-11-21", "2026-11-20T23:00:00.000Z"],
  ["05:30", "2026-11-22T04:30:00.000Z"],
  ["5:30", "2026-11-22T04:30:00.000Z"],
])("%s is %s: without a zone the site's, a time alone is today's", (text, expected) => {
  const at = readMoment(text, OSLO, NOW);
  expect(at === null ? null : iso(at)).toBe(expected);
});

test.each(["", "yesterday", "25:00", "2026-13-01"])("%j is not a moment", (text) => {
  expect(readMoment(text, OSLO, NOW)).toBeNull();
});
