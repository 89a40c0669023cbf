import type { Logger } from "pino";

import type { ChargerConnections } from "../chargers/connections.ts";
import type { Config } from "../config/schema.ts";
import { targeting } from "../control/schedule/targeting.ts";
import type { ControlState } from "../control/state.ts";
import type { StoredState } from "../domain/changes.ts";
import type { ReportRecord } from "../domain/report.ts";
import { type Instant, instant, type Millis, millis } from "../domain/units.ts";
import { bodiless, type ReportRow, reportRow, reportsView } from "../operator/listViews.ts";
import type { Metrics } from "../operator/metrics.ts";
import { siteCalendar, type WallClock } from "../platform/localTime.ts";
import { type ReportSchedule, reportSchedule } from "../reporting/obligations.ts";
import { type ReportSources, reporting } from "../reporting/pipeline.ts";
import { scheduleChangedEvents, restoreSchedule } from "../reporting/reportSchedule.ts";
import { capsOf } from "../retention/caps.ts";
import type { KeptReadings } from "../store/sqlite/pruneReadings.ts";
import type { Store } from "../store/sqlite/store.ts";
import type { VtnClient } from "../vtn/client.ts";
import type { Dialect } from "../vtn/dialects/dialect.ts";
import { ReportClient, type ReportRequests } from "../vtn/reports.ts";
import type { TokenSource } from "../vtn/token.ts";

/** The parts of the daemon that reports share with the rest. */
export interface ReportSurroundings {
  readonly dialect: Dialect;
  readonly tokens: TokenSource;
  readonly client: VtnClient;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly fleet: ChargerConnections;
  readonly now: () => Instant;
  readonly monotonic: () => number;
  readonly random: () => number;
  /** Whether the partner's clock confirms ours. */
  readonly clockAgrees: () => boolean;
  /** How far our clock is known to be ahead of the partner's. */
  readonly ahead: () => Millis;
  /** The site's. */
  readonly clock: WallClock;
  readonly log: Logger;
  /** Called after each step of pruning readings. */
  readonly onKept: (kept: KeptReadings) => void;
  readonly onNearlySpent: (use: ReportRequests) => void;
}

/** Rows of the record, or reports, read at a time. */
const PAGE = 1000;

/** What is owed to the partner, as it is stored. */
export function storedSchedule({ report }: Config, remembered: StoredState): ReportSchedule {
  const desk = reportSchedule();
  restoreSchedule(desk, remembered, report.enabled);
  return desk;
}

/** The same with what follows from the stored events, for where nothing runs: for showing, never for acting. */
export function plannedSchedule(config: Config, remembered: StoredState, store: Store): ReportSchedule {
  const desk = storedSchedule(config, remembered);
  const vehicles = new Map(config.vehicles.map((vehicle) => [vehicle.id, vehicle]));
  const events = new Map(remembered.events.map((known) => [known.id, known]));
  scheduleChangedEvents(desk, events, events.keys(), {
    settings: config.report,
    enabled: config.report.enabled,
    concernsUs: ({ event }) => targeting(event, { vehicles, settings: config.control }).vehicles.size > 0,
    whole: (id) => store.events.event(id),
  });
  return desk;
}

/** Every report that is stored or to come. */
export const shownReports = (desk: ReportSchedule, store: Store): readonly ReportRow[] =>
  reportsView(desk, store.reports({ limit: PAGE }));

/** One report with its body, which one that is only planned has not got; null: there is none of this name. */
export function shownReport(
  desk: ReportSchedule,
  store: Store,
  name: string,
): { readonly report: ReportRow; readonly body: string | null } | null {
  const found = store.report(name);
  if (found !== null) return { report: reportRow(found.record), body: found.body };
  const report = reportsView(desk, []).find((row) => row.name === name);
  return report === undefined ? null : { report, body: null };
}

/** The pipeline that keeps readings and sends reports, the client it sends with, and what may be sent again. */
export function partnerReports(
  desk: ReportSchedule,
  depot: ControlState,
  { report: rules, retention, vtn, site }: Config,
  sources: ReportSources,
  {
    dialect,
    tokens,
    client,
    store,
    metrics,
    fleet,
    now,
    monotonic,
    random,
    clockAgrees,
    ahead,
    clock,
    log,
    onKept,
    onNearlySpent,
  }: ReportSurroundings,
): {
  readonly client: ReportClient;
  readonly report$: ReturnType<typeof reporting>;
  /** The report of this name, ready to be sent again; a text says why it cannot be. */
  readonly sendable: (name: string) => ReportRecord | string;
} {
  const { baseUrl } = vtn;
  const { readings: readingsCap } = capsOf(retention);
  if (!rules.enabled && desk.outbox.size > 0)
    log.warn({ waiting: desk.outbox.size }, "reports wait that are not sent: report.enabled is false");
  const posting = new ReportClient({
    baseUrl,
    dialect,
    tokens,
    now,
    monotonic,
    mayAsk: client.mayAskMore,
    onNearlySpent,
  });
  const report$ = reporting(
    desk,
    depot,
    sources,
    { settings: rules, ...rules },
    {
      now,
      monotonic: () => millis(monotonic()),
      random,
      wallClock: clock,
      calendar: siteCalendar(site.timezone),
      write: (changes) => store.write(changes),
      durable: () => store.durable(),
      owed: () => store.owed(),
      isLinked: (charger) => fleet.isLinked(charger),
      keep: (readings) => store.keepReadings(readings),
      prune: (keep) => {
        const kept = store.pruneReadings(now(), keep, readingsCap);
        if (kept !== null) onKept(kept);
      },
      clockAgrees,
      ahead,
      readings: (chargers, from, until) => store.readings(chargers, from, until),
      seats: (vehicle, from, until) => store.seats(vehicle, from, until),
      record: (event, after) => store.audit({ event, after, limit: PAGE }),
      spell: (report) => JSON.stringify(dialect.writeReport(report)),
      body: (name) => store.report(name)?.body ?? null,
      post: (body) => posting.post(body),
      counted: (outcome) => metrics.reported(outcome),
    },
  );
  return {
    client: posting,
    report$,
    sendable: (name) => {
      const found = store.report(name);
      if (!rules.enabled) return "reports are switched off: report.enabled";
      if (found !== null && found.body !== null) return found.record;
      const row = shownReport(desk, store, name)?.report;
      return row === undefined
        ? `there is no report ${name}: setpointd reports lists them`
        : bodiless(row, (moment) => clock(instant(Date.parse(moment))));
    },
  };
}
