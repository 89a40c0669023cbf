import { expect, test } from "vitest";

import {
  dateOf,
  failedChange,
  foldKinds,
  nearTime,
  nextTime,
  nextTimes,
  problemDetail,
  sentence,
  span,
} from "../../../src/operator/page/format.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test.each([
  [4 * SECOND, "4 s"],
  [90 * SECOND, "90 s"],
  [12 * MINUTE, "12 min"],
  [3 * HOUR + 20 * MINUTE, "3 h 20 min"],
  [3 * HOUR - 20 * SECOND, "3 h"],
  [-3 * HOUR, "3 h"],
  [60 * HOUR, "3 d"],
])("a span of %d ms is shown as %s", (ms, words) => {
  expect(span(ms)).toBe(words);
});

test("of hundreds of alarms of one kind ten are written out, and those of other kinds stay in sight", () => {
  const storm = Array.from({ length: 12 }, (_, number) => ({ kind: "offline", subject: `bay-${number}` }));
  const [offline, fault] = foldKinds([...storm, { kind: "fault", subject: "bay-20" }], ({ kind }) => kind);
  expect(offline?.written).toEqual(storm.slice(0, 10));
  expect(offline?.rest.map(({ subject }) => subject)).toEqual(["bay-10", "bay-11"]);
  expect(fault).toEqual({ written: [{ kind: "fault", subject: "bay-20" }], rest: [] });
});

test("a message begins a sentence, and an id keeps its spelling", () => {
  expect(sentence("the broker cannot be reached")).toBe("The broker cannot be reached");
  expect(sentence("messages of bay-06 are discarded")).toBe("Messages of bay-06 are discarded");
  expect(sentence("bay-06 is offline")).toBe("bay-06 is offline");
});

test("a problem names each fault once, and its moments by the clock of the site", () => {
  const now = Date.parse("2026-11-28T10:39:56Z");
  const expected = "later than 2026-11-28T10:39:56.224Z, at most 24 h ahead: until 2026-11-29T10:39:56.224Z";
  const errors = [{ path: "until.at", expected }];
  expect(problemDetail("Europe/Oslo", now, `until.at: ${expected}`, errors)).toBe(
    "until.at: later than 11:39, at most 24 h ahead: until Sun 11:39",
  );
  expect(problemDetail("UTC", now, "", [{ path: "vehicle", expected: "a vehicle" }])).toBe(
    "vehicle: a vehicle",
  );
});

test.each([
  [409, "bay-01 was not rebooted", "Nothing was changed: bay-01 was not rebooted"],
  [null, "Error: a bug", "Nothing was changed: Error: a bug"],
  [503, "nothing was changed: it cannot be stored", "Nothing was changed: it cannot be stored"],
  [503, "it is not known whether this was stored", "It is not known whether this was stored"],
  [0, "no answer", "It is not known whether this was done. Look before you repeat it: no answer"],
  [502, "HTTP 502", "It is not known whether this was done. Look before you repeat it: HTTP 502"],
])("a change that failed with status %j says what is known of it", (status, problem, shown) => {
  expect(failedChange(status, problem)).toBe(shown);
});

test.each([
  ["2026-10-24T23:59:00Z", "01:59"],
  ["2026-10-25T00:30:00Z", "02:30 GMT+2"],
  ["2026-10-25T01:30:00Z", "02:30 GMT+1"],
  ["2026-10-25T02:00:00Z", "03:00"],
  ["2026-03-29T01:00:00Z", "Sun 29 Mar 03:00"],
])("in the night in which clocks are set back, %s is shown as %s", (at, shown) => {
  expect(nearTime("Europe/Oslo", Date.parse(at), Date.parse("2026-10-24T23:00:00Z"))).toBe(shown);
});

test.each([
  ["a plain night", "2026-11-21T22:00:00Z", "05:40", "2026-11-22T04:40:00Z"],
  ["a time that comes twice, its first", "2026-10-24T22:00:00Z", "02:30", "2026-10-25T00:30:00Z"],
  ["a time that comes twice, after its first", "2026-10-25T00:45:00Z", "02:30", "2026-10-25T01:30:00Z"],
  ["a time that is skipped", "2026-03-28T22:00:00Z", "02:30", "2026-03-29T01:30:00Z"],
])("the end of an override is found on %s", (_, now, clock, found) => {
  expect(nextTime("Europe/Oslo", Date.parse(now), clock)).toBe(Date.parse(found));
});

test.each([
  [
    "forward",
    "2026-03-27T22:00:00Z",
    ["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
  ],
  ["back", "2026-10-23T22:00:00Z", ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]],
])("a departure is offered once for each day, also where the clocks are set %s", (_, now, found) => {
  const offered = nextTimes("Europe/Oslo", Date.parse(now), "02:30", 3);
  expect(offered).toEqual(found.map((at) => Date.parse(at)));
  expect(new Set(offered.map((at) => dateOf("Europe/Oslo", at))).size).toBe(3);
});

test.each([
  ["2026-12-02T04:40:00Z", "Wed 05:40"],
  ["2026-12-05T04:40:00Z", "Sat 5 Dec 05:40"],
  ["2026-11-21T04:40:00Z", "Sat 21 Nov 05:40"],
])(
  "a departure in more than some days has its date: a weekday alone could be the wrong week",
  (at, shown) => {
    expect(nearTime("Europe/Oslo", Date.parse(at), Date.parse("2026-11-28T10:00:00Z"))).toBe(shown);
  },
);
