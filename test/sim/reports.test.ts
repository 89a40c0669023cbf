import { expect, test } from "vitest";
import type { Report } from "../../src/reporting/report.ts";
import { amperes, eventId, instant } from "../../src/domain/units.ts";
import { reportAnswer, ReportTray } from "../../src/sim/reports.ts";
import { type ReportFormat, writeReport } from "../../src/vtn/dialects/partner/report.ts";

const START = instant(Date.parse("2026-11-21T12:00:00Z"));
const span = { from: START, until: instant(START + 3_600_000) };

const report: Report = {
  event: eventId("EV-1"),
  program: "PRG-1",
  descriptor: 0,
  k: 0,
  name: "EV-1/0/0",
  span,
  payloadDescriptors: [{ payloadType: "USAGE", readingType: "DIRECT_READ", units: "KWH" }],
  resources: [
    {
      name: "veh-1",
      quality: "OK",
      causes: [],
      snapshot: {
        energy: 4.2,
        current: 16,
        power: 11,
        soc: 71,
        setpoint: { kind: "current", amperes: amperes(16) },
      },
      intervals: [
        {
          id: 0,
          span,
          payloads: [
            { type: "USAGE", values: [4.2] },
            { type: "DATA_QUALITY", values: ["OK"] },
          ],
          notes: [],
        },
      ],
    },
  ],
  flags: [],
};
const written = (format: ReportFormat): unknown =>
  writeReport(report, format, {
    clientName: "depot",
    notes: true,
    location: { latitude: 60, longitude: 11 },
  });

test.each(["openadr30", "openadr31", "vehicleChargeAction"] as const)(
  "a report in the format %s is accepted as such",
  (format) => {
    const tray = new ReportTray();
    const report = tray.accept(written(format), START);
    expect(report).toMatchObject({ id: "R-1", format, event: "EV-1" });
    expect(tray.accepted).toEqual([report]);
    if (typeof report !== "string")
      expect(reportAnswer(report)).toMatchObject({ id: "R-1", createdDateTime: "2026-11-21T12:00:00.000Z" });
  },
);

test.each<readonly [string, unknown]>([
  ["nothing", null],
  ["another event's fields", { event: "EV-1" }],
  ["no program", { ...(written("openadr30") as object), programID: "" }],
  ["a field of our own", { ...(written("openadr31") as object), flags: [] }],
  ["a payload without a value", JSON.parse(JSON.stringify(written("openadr30")).replace("[4.2]", "[]"))],
])("%s is rejected with a reason", (_what, body) => {
  const tray = new ReportTray();
  expect(tray.accept(body, START)).toMatch(
    /^no report: openadr30: .+; openadr31: .+; vehicleChargeAction: .+/,
  );
  expect(tray.accepted).toEqual([]);
});
