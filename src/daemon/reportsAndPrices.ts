import type { Config } from "../config/schema.ts";
import { targeting } from "../control/schedule/targeting.ts";
import type { StoredState } from "../domain/changes.ts";
import type { ReportRecord } from "../domain/report.ts";
import type { PriceQuery } from "../domain/prices.ts";
import type { KeptReadings, Store } from "../domain/store.ts";
import { fromIso } from "../domain/units.ts";
import { bodiless, type ReportRow, reportRow, reportsView } from "../operator/listViews.ts";
import { siteCalendar } from "../platform/clock.ts";
import { cronTicks } from "../platform/scheduling.ts";
import { type PriceBoard, priceBoard } from "../prices/board.ts";
import { prices, type PricePorts } from "../prices/pipeline.ts";
import type { ReportSchedule } from "../reporting/obligations.ts";
import { type ReportSources, reporting } from "../reporting/pipeline.ts";
import type { ReportPorts } from "../reporting/ports.ts";
import { neededWhole, scheduleChangedEvents } from "../reporting/reportSchedule.ts";
import { capsOf } from "../retention/rules.ts";
import type { ReportService } from "./edges.ts";
import { storedSchedule, type Site } from "./site.ts";

/** Edges of reporting: the rest comes from the site. */
type ReportEdges = Pick<
  ReportPorts,
  "write" | "writeUntilStored" | "isLinked" | "counted" | "clockAgrees" | "ahead"
> & {
  readonly partner: ReportService;
  /** Called after each step of pruning readings. */
  readonly onKept: (kept: KeptReadings) => void;
};

/** Rows of the record, or reports, read at a time. */
const PAGE = 1000;

/** The stored schedule with the reports that follow from the stored events. For showing while no daemon runs, never for sending. */
export async function plannedSchedule(
  config: Config,
  stored: StoredState,
  store: Store,
): Promise<ReportSchedule> {
  const schedule = storedSchedule(config, stored);
  const vehicles = new Map(config.vehicles.map((vehicle) => [vehicle.id, vehicle]));
  const events = new Map(stored.events.map((known) => [known.id, known]));
  const needed = [...neededWhole(schedule, events, events.keys())];
  const whole = await store.archive.whole(needed.map(({ id }) => id));
  scheduleChangedEvents(schedule, events, events.keys(), {
    settings: config.report,
    enabled: config.report.enabled,
    concernsUs: ({ event }) => targeting(event, { vehicles, settings: config.control }).vehicles.size > 0,
    whole: ({ id }) => whole.get(id) ?? null,
  });
  return schedule;
}

/** Every report that is to come or waits, and the newest closed ones. */
export async function shownReports(schedule: ReportSchedule, store: Store): Promise<readonly ReportRow[]> {
  const newest = await store.reports({ limit: PAGE });
  const read = new Set(newest.map(({ name }) => name));
  // After a long outage more wait than are read.
  const older = [...schedule.outbox.values()].filter(({ name }) => !read.has(name));
  return reportsView(schedule, [...newest, ...older.toSorted((a, b) => b.composedAt - a.composedAt)]);
}

/** A report with its body. A report that is only planned has none. Null: no report of this name. */
export async function shownReport(
  schedule: ReportSchedule,
  store: Store,
  name: string,
): Promise<{ readonly report: ReportRow; readonly body: string | null } | null> {
  const found = await store.report(name);
  if (found !== null) return { report: reportRow(found.record), body: found.body };
  const report = reportsView(schedule, []).find((row) => row.name === name);
  return report === undefined ? null : { report, body: null };
}

/** The pipeline that keeps readings and sends reports, and the reports that may be sent again. */
export function partnerReports(
  site: Pick<
    Site,
    | "config"
    | "store"
    | "state"
    | "schedule"
    | "now"
    | "monotonic"
    | "random"
    | "wallClock"
    | "patiently"
    | "log"
  >,
  sources: ReportSources,
  { partner, onKept, ...edges }: ReportEdges,
): {
  readonly report$: ReturnType<typeof reporting>;
  /** The report of this name, ready to be sent again. A text: the reason why it cannot be. */
  readonly sendable: (name: string) => Promise<ReportRecord | string>;
} {
  const { store, state, schedule, now, monotonic, random, wallClock, patiently, log } = site;
  const { report: rules, retention } = site.config;
  const { readings: readingsCap } = capsOf(retention);
  if (!rules.enabled && schedule.outbox.size > 0)
    log.warn({ waiting: schedule.outbox.size }, "reports wait that are not sent: report.enabled is false");
  const report$ = reporting(
    schedule,
    state,
    sources,
    { settings: rules, ...rules },
    {
      ...edges,
      now,
      monotonic,
      random,
      wallClock,
      calendar: siteCalendar(site.config.site.timezone),
      committed: () => store.committed(),
      owed: () => patiently(() => store.owed()),
      keep: (readings) => store.keepReadings(readings),
      prune: async (keep) => {
        const kept = await store.pruneReadings(now(), keep, readingsCap);
        if (kept !== null) onKept(kept);
      },
      readings: (chargers, from, until) => patiently(() => store.readings(chargers, from, until)),
      seats: (vehicle, from, until) => patiently(() => store.seats(vehicle, from, until)),
      record: (event, after) => patiently(() => store.audit({ event, after, limit: PAGE })),
      serialize: (report) => JSON.stringify(partner.write(report)),
      post: (body) => partner.post(body),
      body: async (name) => (await patiently(() => store.report(name)))?.body ?? null,
    },
  );
  return {
    report$,
    sendable: async (name) => {
      const found = await store.report(name);
      if (!rules.enabled) return "reports are switched off: report.enabled";
      if (found !== null && found.body !== null) return found.record;
      const row = (await shownReport(schedule, store, name))?.report;
      return row === undefined
        ? `there is no report ${name}: setpointd reports lists them`
        : bodiless(row, (moment) => wallClock(fromIso(moment)));
    },
  };
}

/** The price series of the configuration, with what is stored of them. */
export async function configuredPrices({ vtn }: Config, store: Store): Promise<PriceBoard> {
  const { regions, forecastPath } = vtn.prices;
  const kinds = forecastPath === null ? (["actual"] as const) : (["actual", "forecast"] as const);
  const queries = regions.flatMap((region) => kinds.map((kind): PriceQuery => ({ region, kind })));
  return priceBoard(queries, await store.prices());
}

/** The pipeline that keeps the board fresh. Without a configured region it asks for nothing. */
export function spotPrices(
  board: PriceBoard,
  { vtn, site: { timezone } }: Config,
  brokerUp$: Parameters<typeof prices>[2],
  { store, now, random, wallClock, log }: Pick<Site, "store" | "now" | "random" | "wallClock" | "log">,
  edges: Pick<PricePorts, "ask" | "publish" | "counted">,
): ReturnType<typeof prices> {
  return prices(board, cronTicks(vtn.prices.cron, timezone), brokerUp$, {
    ...edges,
    now,
    random,
    wallClock,
    write: (changes) => store.write(changes),
    alarm: (message) => log.error(message),
  });
}
