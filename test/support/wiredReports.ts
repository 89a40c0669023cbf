import { type Observable, Subject } from "rxjs";

import { siteCalendar } from "../../src/calendar.ts";
import type { ReportConfig } from "../../src/config/report.ts";
import type { Depot } from "../../src/core/depot.ts";
import type { Remembered } from "../../src/core/ledger.ts";
import { reportDesk, reportedOn, restoreDesk } from "../../src/core/reporting/desk.ts";
import type { PostAnswer, ReportRecord } from "../../src/core/reporting/outbox.ts";
import type { ControlPorts } from "../../src/flow/ports.ts";
import type { ReportPorts } from "../../src/flow/reportPorts.ts";
import { type ReportSources, reporting } from "../../src/flow/reporting.ts";
import { reportsView } from "../../src/operator/reportView.ts";
import type { Store } from "../../src/store/store.ts";
import { writeReport } from "../../src/vtn/wire/report.ts";
import { wallClock } from "../../src/wallClock.ts";

/** Reporting as src/partnerReports.ts wires it, but for the partner. */
export function wiredReports(
  rules: ReportConfig,
  { depot, store, remembered }: { depot: Depot; store: Store; remembered: Remembered },
  sources: Omit<ReportSources, "resend$">,
  ports: ControlPorts & { readonly zone: string } & Pick<ReportPorts, "clockAgrees" | "ahead">,
  post: (body: string) => Promise<PostAnswer>,
) {
  const desk = reportDesk();
  restoreDesk(desk, remembered, rules.enabled);
  const resend$ = new Subject<ReportRecord>();
  const { format, clientName, notes, location } = rules;
  const report$: Observable<unknown> = reporting(
    desk,
    depot,
    { ...sources, resend$ },
    { settings: rules, ...rules },
    {
      ...ports,
      wallClock: wallClock(ports.zone, ports.now),
      calendar: siteCalendar(ports.zone),
      owed: () => store.owed(),
      keep: (readings) => store.keep(readings),
      prune: (keep) => void store.pruneReadings(ports.now(), keep),
      readings: (chargers, from, until) => store.readings(chargers, from, until),
      seats: (vehicle, from, until) => store.seats(vehicle, from, until),
      record: (event, after) => store.audit({ event, after, limit: 100 }),
      spell: (report) => JSON.stringify(writeReport(report, format, { clientName, notes, location })),
      body: (name) => store.report(name)?.body ?? null,
      post,
      counted: () => {},
    },
  );
  return {
    report$,
    resend: (name: string) => {
      const found = store.report(name);
      if (found !== null) resend$.next(found.record);
    },
    reportedOn: () => reportedOn(desk, depot.known),
    view: () => reportsView(desk, store.reports({})),
  };
}
