import { type Observable, Subject } from "rxjs";

import type { ReportConfig } from "../../src/config/sections/report.ts";
import type { ControlPorts } from "../../src/control/ports.ts";
import type { ControlState } from "../../src/control/state.ts";
import type { StoredState } from "../../src/domain/changes.ts";
import type { PostAnswer, ReportRecord } from "../../src/domain/report.ts";
import { reportsView } from "../../src/operator/listViews.ts";
import { siteCalendar, wallClock } from "../../src/platform/localTime.ts";
import { reportSchedule } from "../../src/reporting/obligations.ts";
import { type ReportSources, reporting } from "../../src/reporting/pipeline.ts";
import type { ReportPorts } from "../../src/reporting/ports.ts";
import { reportedOn, restoreSchedule } from "../../src/reporting/reportSchedule.ts";
import type { Store } from "../../src/store/sqlite/store.ts";
import { writeReport } from "../../src/vtn/dialects/partner/report.ts";

/** Reporting as src/daemon/partnerReports.ts wires it, but for the partner. */
export function wiredReports(
  rules: ReportConfig,
  { depot, store, remembered }: { depot: ControlState; store: Store; remembered: StoredState },
  sources: Omit<ReportSources, "resend$">,
  ports: ControlPorts & { readonly zone: string } & Pick<ReportPorts, "clockAgrees" | "ahead">,
  post: (body: string) => Promise<PostAnswer>,
) {
  const desk = reportSchedule();
  restoreSchedule(desk, remembered, rules.enabled);
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
      keep: (readings) => store.keepReadings(readings),
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
