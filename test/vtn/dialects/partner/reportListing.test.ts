import { expect, test } from "vitest";
import { identityIn, isSameReport, readReportPage } from "../../../../src/vtn/dialects/partner/report.ts";

const ours = { event: "EV-1", name: "EV-1/0/0", client: "depot" };

test("a report of any format names its event and itself, and its sender where it has one", () => {
  const openAdr = JSON.stringify({
    eventID: "EV-1",
    reportName: "EV-1/0/0",
    clientName: "depot",
    resources: [],
  });
  expect(identityIn(openAdr)).toEqual(ours);
  const action = JSON.stringify({ eventId: "EV-1", name: "EV-1/0/0", payloads: [] });
  expect(identityIn(action)).toEqual({ ...ours, client: null });
  expect(["{", "[]", '{"eventID":"EV-1"}'].map(identityIn)).toEqual([null, null, null]);
});

test("a list of reports is a bare array or in {reports}; any other value is no list", () => {
  const entry = { id: "R-1", eventID: "EV-1", reportName: "EV-1/0/0", clientName: "depot" };
  for (const list of [[entry, 5], { reports: [entry, 5] }])
    expect(readReportPage(Buffer.from(JSON.stringify(list)))).toEqual({ entries: 2, reports: [ours] });
  expect(["", "{}", '"R-1"', "<html>"].map((text) => readReportPage(Buffer.from(text)))).toEqual([
    null,
    null,
    null,
    null,
  ]);
});

test("the same name on another event, or from another sender, is another report", () => {
  expect(isSameReport(ours, { ...ours, client: null })).toBe(true);
  expect(isSameReport({ ...ours, client: null }, ours)).toBe(true);
  expect(isSameReport(ours, { ...ours, client: "other" })).toBe(false);
  expect(isSameReport(ours, { ...ours, event: "EV-2" })).toBe(false);
  expect(isSameReport(ours, { ...ours, name: "EV-1/0/1" })).toBe(false);
});
