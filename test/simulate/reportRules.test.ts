import { expect, test } from "vitest";

import { HOUR, MINUTE, type PlannedReport } from "./plan.ts";
import { SeenReports } from "./reportRules.ts";
import type { Posted } from "./simTray.ts";

const once: PlannedReport = { payloadType: "USAGE", historical: true, numIntervals: -1, repeat: 0 };

function seen(...reports: readonly PlannedReport[]): SeenReports {
  const plan = {
    id: "E1",
    start: 0,
    duration: HOUR,
    spread: 0,
    priority: 1,
    ask: { kind: "current", amperes: 10 },
    vehicles: ["v1"],
    reports,
  } as const;
  return new SeenReports(new Map([["E1", [{ plan, revised: 0, created: 0 }]]]));
}

const posted = (name: string, end: number, body = name): Posted => ({
  name,
  body,
  starts: [0],
  ends: [end],
});

test("a report in time is well, and may come again as it was", () => {
  const reports = seen(once);
  expect(reports.breachOf(posted("E1/0/0", HOUR), HOUR + MINUTE)).toBeNull();
  expect(reports.breachOf(posted("E1/0/0", HOUR), HOUR + 2 * MINUTE)).toBeNull();
  expect(reports.breachOf(posted("E1/0/1", 2 * HOUR), 3 * HOUR)).toBeNull();
});

test("a report that comes again with other contents is found", () => {
  const reports = seen(once);
  reports.breachOf(posted("E1/0/0", HOUR), 2 * HOUR);
  expect(reports.breachOf(posted("E1/0/0", HOUR, "other"), 2 * HOUR)?.invariant).toMatch(
    /the same each time/,
  );
});

test.each(["E2/0/0", "E1/1/0", "E1/0", "nonsense"])("a report without an obligation is found: %s", (name) => {
  expect(seen(once).breachOf(posted(name, HOUR), 2 * HOUR)?.invariant).toMatch(/asked for/);
});

test("a report before its end, and before the wait for late readings is over, is found; a forecast may come early", () => {
  expect(seen(once).breachOf(posted("E1/0/0", HOUR), HOUR + 29_999)?.invariant).toMatch(/before its end/);
  const ahead = { ...once, historical: false };
  expect(seen(ahead).breachOf(posted("E1/0/0", HOUR), 0)).toBeNull();
});

test("two names for one time, or numbers against the order of time, are found", () => {
  const reports = seen(once);
  reports.breachOf(posted("E1/0/1", HOUR), 9 * HOUR);
  expect(reports.breachOf(posted("E1/0/2", HOUR), 9 * HOUR)?.invariant).toMatch(/numbered by their time/);
  expect(reports.breachOf(posted("E1/0/0", 2 * HOUR), 9 * HOUR)?.invariant).toMatch(/numbered by their time/);
});
