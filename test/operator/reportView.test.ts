import { expect, test } from "vitest";

import type { ReportRecord } from "../../src/domain/report.ts";
import { eventId } from "../../src/domain/units.ts";
import { bodiless, reportsView } from "../../src/operator/listViews.ts";
import { reportSchedule } from "../../src/reporting/obligations.ts";
import { scheduleChangedEvents } from "../../src/reporting/reportSchedule.ts";
import { aReportedEvent, reportSettings } from "../support/aReport.ts";
import { at, live } from "../support/anEvent.ts";

const sent: ReportRecord = {
  name: "EV-1/0/0",
  event: eventId("EV-1"),
  descriptor: 0,
  k: 0,
  payloadType: "USAGE",
  span: { from: at("10:00"), until: at("11:00") },
  summary: "1 vehicle, 4.2 kWh",
  flags: [],
  composedAt: at("11:00:30"),
  since: at("11:00:30"),
  state: "sent",
  nextTry: null,
  attempts: 1,
  status: 201,
  reason: null,
  receipt: "R-1",
  sentAt: at("11:00:31"),
};

test("every descriptor is shown: planned reports with their time, ended ones with their reason, then composed reports", () => {
  const desk = reportSchedule();
  const foreign = live(aReportedEvent(), { id: eventId("EV-9") });
  const known = new Map([live(aReportedEvent()), foreign].map((event) => [event.id, event]));
  scheduleChangedEvents(desk, known, known.keys(), {
    settings: reportSettings(),
    enabled: true,
    concernsUs: ({ event }) => event !== foreign.revision.event,
    whole: () => null,
  });
  const rows = reportsView(desk, [sent]);
  expect(rows).toMatchObject([
    {
      name: "EV-7731/0/0",
      state: "planned",
      payloadType: "USAGE",
      from: "2026-11-21T12:00:00.000Z",
      until: "2026-11-21T13:00:00.000Z",
      due: "2026-11-21T13:00:30.000Z",
    },
    { name: "EV-9/0", state: "flagged", reason: "none of its targets is a vehicle of this site", due: null },
    {
      name: "EV-1/0/0",
      state: "sent",
      due: null,
      composedAt: "2026-11-21T11:00:30.000Z",
      sentAt: "2026-11-21T11:00:31.000Z",
      receipt: "R-1",
    },
  ]);
  expect(rows.map((row) => bodiless(row, (iso) => iso.slice(11, 19)))).toEqual([
    "report EV-7731/0/0 is planned: it is composed at 13:00:30; there is no body yet",
    "EV-9/0 has no report: none of its targets is a vehicle of this site",
    "the body of report EV-1/0/0 is no longer stored",
  ]);
  const [first, ...others] = rows.map((row) => Object.keys(row).toSorted());
  for (const keys of others) expect(keys).toEqual(first);
});
