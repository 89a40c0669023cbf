import { expect, test } from "vitest";
import { REPORT_DEFAULTS } from "../../../src/reporting/settings.ts";
import { configured, mistakesIn, theMistake } from "../../support/aConfiguration.ts";

test("without a section report, the defaults are as documented, and reports go where events come from", () => {
  const { report } = configured({});
  expect(report).toMatchObject({
    ...REPORT_DEFAULTS,
    enabled: true,
    format: "openadr30",
    path: "/energy-coordination/v1/reports",
    clientName: "depot",
    notes: true,
    location: null,
    giveUpAfter: 7 * 86_400_000,
    keepReadings: 50 * 86_400_000,
  });
});

const path = (over: object) => configured(over as never).report.path;

test("the path follows the family of the events, unless reports have a family or a path of their own", () => {
  expect(path({ vtn: { family: "vtn" } })).toBe("/vtn/v1/reports");
  expect(path({ report: { family: "vtn" } })).toBe("/vtn/v1/reports");
  expect(path({ report: { path: "/reports" } })).toBe("/reports");
});

test("every setting has bounds, and a mistake states the right value", () => {
  expect(
    mistakesIn({ report: { maxIntervals: 0, baselineDays: 46, minInterval: "0s", giveUpAfter: "31d" } }),
  ).toHaveLength(4);
  expect(theMistake({ report: { mode: "automatic" } }).path).toBe("report.mode");
  expect(theMistake({ report: { percentScale: 10 } }).expected).toBe("100 or 1");
  expect(theMistake({ report: { path: "reports" } }).expected).toContain("starts with /");
});
