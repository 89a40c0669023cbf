import type { Config } from "../config/schema.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Beat } from "../domain/store.ts";
import { eventId, iso } from "../domain/units.ts";
import { eventPlan } from "../operator/eventPlan.ts";
import type { LiveStream } from "../operator/http/stream.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import { pricesView, readingsView, sitePowerView } from "../operator/listViews.ts";
import type { Metrics } from "../operator/metrics.ts";
import { chargersView, eventsView, vehiclesView } from "../operator/views.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import { version } from "../platform/packageRoot.ts";
import type { Health } from "../platform/systemd.ts";
import type { PriceBoard } from "../prices/board.ts";
import type { Edges } from "./edges.ts";
import { shownReports } from "./reportsAndPrices.ts";
import { prove } from "./proof.ts";
import type { Site } from "./site.ts";

/** The running parts that the views show. */
interface ShownParts {
  readonly config: Config;
  readonly board: PriceBoard;
  readonly stream: LiveStream;
  readonly metrics: Metrics;
  /** Seals proofs. */
  readonly siteKey: Buffer;
  readonly supportArchive: Edges["supportArchive"];
}

/** Answers that the control socket gives as well. */
interface SharedAnswers extends Pick<
  OperatorViews,
  | "status"
  | "explain"
  | "handover"
  | "holds"
  | "mode"
  | "configuration"
  | "resend"
  | "bindings"
  | "reboots"
  | "trials"
  | "alarms"
  | "departures"
> {
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
  /** Health after a commit was tried. */
  readonly health: (committed: Beat) => Health;
}

/** Views of a running site for the listener of the operator. */
export function siteViews(
  { store, state, schedule, now, monotonic }: Site,
  { config, board, stream, metrics, siteKey, supportArchive }: ShownParts,
  { isReady, health, ...shared }: SharedAnswers,
): OperatorViews {
  const archived = supportArchive && oneAtATime(supportArchive);
  return {
    ...shared,
    stream,
    metrics,
    ready: isReady,
    health: () => {
      if (!isReady()) return { fit: true, status: "starting" };
      // Another commit is tried only after a failed one: a monitor that asks each second must not wear the flash.
      return health(store.stats().failing === null ? { ok: true } : store.beat(now()));
    },
    site: () => siteView(config),
    bundle: async (by) => {
      const archive = (await archived?.()) ?? "this site has no configuration file of its own";
      if (typeof archive !== "string")
        store.write([auditRow("operator", now(), `${by} saved a support archive`, { facts: { by } })]);
      return archive;
    },
    events: async () => {
      const over = state.known.values().find(({ kind }) => kind === "over");
      // A database that is away is answered by a problem. A list that has begun could only break off.
      if (over !== undefined) await state.known.readNow(over.id);
      return eventsView(state, now());
    },
    chargers: () => chargersView(state, now()),
    vehicles: () => vehiclesView(state, now(), shared.departures.of),
    audit: async (query) => (await store.audit(query)).map((row) => ({ ...row, at: iso(row.at) })),
    verify: oneAtATime(async () => ({ ...(await store.verify()) })),
    prices: () => pricesView(board),
    reports: () => shownReports(schedule, store),
    readings: (query) => readingsView(state, store, query, now()),
    sitePower: (query) => sitePowerView(state, store, query, now()),
    eventPlan: async (event, isDryRun) => {
      const recorded = isDryRun ? await state.known.readNow(eventId(event)) : null;
      return runCooperatively(eventPlan(state, event, now(), recorded ?? null), monotonic);
    },
    proof: async (event, format) => {
      const known = (await state.known.readNow(eventId(event))) ?? null;
      return prove(event, format, { config, store, siteKey, now, monotonic, known });
    },
  };
}

/** The site as the page shows it: its plan, and the makes and ratings of its chargers. */
function siteView({ site, chargers }: Pick<Config, "site" | "chargers">): Json {
  const { id, timezone, board, fuse = null } = site;
  const maintenance = site.maintenance.map((work) => ({
    ...work,
    from: iso(work.from),
    until: iso(work.until),
  }));
  const makes = Object.fromEntries(chargers.map(({ id: charger, profile }) => [charger, profile]));
  const ratings = Object.fromEntries(
    chargers.map(({ id: charger, phases, voltage, maxCurrent, maxPower }) => [
      charger,
      { phases, voltage, maxCurrentA: maxCurrent, maxPowerW: maxPower },
    ]),
  );
  return { site: id, timezone, version: version(), board, maintenance, makes, ratings, fuseA: fuse };
}

/** Requests that come while the work runs share its result. */
function oneAtATime<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => (running ??= work().finally(() => (running = null)));
}
