import { expect, test } from "vitest";

import { formatRefusal, inZone, readMoment, readNext } from "../../src/cli/output.ts";
import { instant, iso } from "../../src/domain/units.ts";
import { conflict, invalid } from "../../src/operator/answer.ts";

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
  ["2026-10-25T02:30", "2026-10-25T00:30:00.000Z"],
  ["2026-10-25T02:30+01:00", "2026-10-25T01:30:00.000Z"],
])("%s is %s: without a zone the site's, a time alone is today's", (text, expected) => {
  const at = readMoment(text, OSLO, NOW);
  expect(at === null ? null : iso(at)).toBe(expected);
});

test.each(["", "yesterday", "25:00", "2026-13-01"])("%j is not a moment", (text) => {
  expect(readMoment(text, OSLO, NOW)).toBeNull();
});

test("the moments of an answer are shown in the site's zone, which is named, with the date where it is not today", () => {
  const local = inZone(OSLO, () => NOW);
  expect(local("later than 2026-11-21T23:30:00.000Z, until 2026-11-22T23:30:00.000Z")).toBe(
    "later than 00:30:00, until 2026-11-23 00:30:00; times in Europe/Oslo",
  );
  expect(local('found "2026-11-21T05:00:00Z", as typed')).toBe('found "2026-11-21T05:00:00Z", as typed');
});

test("a refused request names what was found and what is right, one mistake after another", () => {
  const { problem } = invalid(
    { path: "since", found: "x", expected: "22:00, 8h or an ISO moment" },
    { path: "reason", found: null, expected: "a text" },
    { path: "scope", found: "y".repeat(100), expected: "a charger" },
  );
  expect(formatRefusal(problem)).toBe(
    `the request is not valid: since: found "x"; expected 22:00, 8h or an ISO moment; reason: missing; expected a text; scope: found "${"y".repeat(79)}…; expected a charger`,
  );
  const held = conflict("a hold is open", "hold-7-1 of anna");
  expect(held.ok ? "" : formatRefusal(held.problem)).toBe("a hold is open: hold-7-1 of anna");
});

test.each([
  ["a time to come", "2026-03-10T23:30+01:00", "23:40", "2026-03-10T22:40:00.000Z"],
  ["tomorrow", "2026-03-10T23:30+01:00", "05:40", "2026-03-11T04:40:00.000Z"],
  ["the day of 23 hours", "2026-03-28T23:30+01:00", "05:40", "2026-03-29T03:40:00.000Z"],
  ["after the day of 25 hours began", "2026-10-25T00:10+02:00", "00:05", "2026-10-25T23:05:00.000Z"],
  ["before the hour that comes twice", "2026-10-25T01:50+02:00", "02:30", "2026-10-25T00:30:00.000Z"],
  ["in that hour, still to come", "2026-10-25T02:10+02:00", "02:30", "2026-10-25T00:30:00.000Z"],
  ["in that hour, to come again", "2026-10-25T02:40+02:00", "02:30", "2026-10-25T01:30:00.000Z"],
  ["in that hour for the second time", "2026-10-25T02:10+01:00", "02:30", "2026-10-25T01:30:00.000Z"],
  ["after that hour", "2026-10-25T02:40+01:00", "02:30", "2026-10-26T01:30:00.000Z"],
  ["that the clocks skip", "2026-03-29T01:50+01:00", "02:30", "2026-03-29T01:30:00.000Z"],
])("the next time of the day, %s", (_case, now, text, expected) => {
  expect(iso(readNext(text, OSLO, instant(Date.parse(now))) ?? instant(0))).toBe(expected);
});
