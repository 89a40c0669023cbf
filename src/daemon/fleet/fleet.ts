import { hostname } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";

import type { Fleet } from "../../config/fleet.ts";
import { Metrics } from "../../operator/metrics.ts";
import { SharedPlaces } from "../../platform/cooperative.ts";
import { Database, faultOf } from "../../store/postgres/database.ts";
import { FleetInbox } from "../../store/postgres/fleetInbox.ts";
import { FleetList } from "../../store/postgres/fleetList.ts";
import { FleetSites } from "../../store/postgres/fleetSites.ts";
import { FleetWork } from "../../store/postgres/fleetWork.ts";
import { remedyOf } from "../../store/postgres/inspect.ts";
import { migrate, warnOfVersion } from "../../store/postgres/schema.ts";
import { dialectOf } from "../../vtn/dialects/choose.ts";
import { CertificatesInUse, noteInLog } from "../certificates.ts";
import type { Machine } from "../edges.ts";
import { profileChecks } from "../chargerModels.ts";
import { loadProfiles } from "../loadProfiles.ts";
import { partnerOverHttp } from "../real.ts";
import { roomForDispatches } from "../site.ts";
import { pageAddress } from "../standIn.ts";
import { StopSteps } from "../stopSteps.ts";
import { DeliveryReader, FleetDeliveries } from "./deliveries.ts";
import { fleetOperator, FleetRecord, StateReports } from "./operator.ts";
import { FleetPoller, ListFeed } from "./partnerList.ts";
import { LedSites } from "./ledSites.ts";
import { FleetLoops } from "./loops.ts";
import { type LedSite, reloadSites, type SiteParts, startSite } from "./siteEdges.ts";
import { FleetWebhook } from "./webhook.ts";

/** Connections to the database. Each commit of a site holds one for a few ms. */
const CONNECTIONS = 12;
const CONNECTIONS_OF_LEASES = 2;
const CONNECTIONS_OF_DELIVERIES = 2;
/** Publishes without an acknowledgement of all sites together. */
const MOST_PUBLISHES = 500;
/** Time after which a publish without an acknowledgement does not count any more, ms: a broker that hangs delays no other. */
const PUBLISH_COUNTS_FOR_MS = 2_000;

/** Metrics of all sites together. The gauges of a single site are in its status. */
class SharedMetrics extends Metrics {
  override show(): void {}
}

export type FleetStarted =
  | { readonly ok: true; readonly fleet: FleetDaemon }
  | { readonly ok: false; readonly reason: string };

/** Many sites in one process. Each is led as `setpointd run` leads one; they share the edges. */
export class FleetDaemon implements AsyncDisposable {
  readonly webhookPort: number | null;
  readonly operatorPort: number;
  /** Reads certificates again: those of the listeners at once, those of the sites one after another. */
  readonly reload: () => void;
  readonly #sites: LedSites;
  readonly #stop: StopSteps;

  private constructor(
    parts: Pick<FleetDaemon, "webhookPort" | "operatorPort" | "reload">,
    sites: LedSites,
    stop: StopSteps,
  ) {
    this.webhookPort = parts.webhookPort;
    this.operatorPort = parts.operatorPort;
    this.reload = parts.reload;
    this.#sites = sites;
    this.#stop = stop;
  }

  /** See `LedSites.contain`. */
  contain(error: unknown): boolean {
    return this.#sites.contain(error);
  }

  /** Sites that this process leads. */
  get led(): number {
    return this.#sites.size;
  }

  get stopStep(): string | null {
    return this.#stop.current;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop[Symbol.asyncDispose]();
  }

  /** Rejects if an address cannot be bound. */
  static async start(fleet: Fleet, machine: Machine): Promise<FleetStarted> {
    await using stop = new StopSteps();
    const { log, monotonic, now } = machine;
    const { database: at, shared: config, text, place } = fleet;
    const connect = (connections: number): Database =>
      new Database({ ...at, patience: Math.ceil((at.lease * 2) / 3), connections, log });
    const database = stop.use("close the connections to the database", connect(CONNECTIONS));
    // A renewal waits for no commit.
    const ofLeases = stop.use("close the connections of the leases", connect(CONNECTIONS_OF_LEASES));
    // Deliveries wait for no commit of a site.
    const ofDeliveries = stop.use(
      "close the connections of the deliveries",
      connect(CONNECTIONS_OF_DELIVERIES),
    );
    const sites = new FleetSites(database, at.siteKeys, machine.randomBytes);
    const unusable = await prepare(database, ofDeliveries, sites, at.schema, log);
    if (unusable !== null) return { ok: false, reason: unusable };
    const name = `${hostname()} ${process.pid}`;
    const term = { process: name, length: at.lease };
    const work = new FleetWork(ofLeases, term, monotonic);
    const inbox = new FleetInbox(ofDeliveries, term, at.siteKeys);
    const led = new Map<string, LedSite>();
    const list = new FleetList(database);
    const dialect = dialectOf(config);
    const partner = stop.use(
      "end requests to the partner",
      partnerOverHttp(config, dialect, machine, { now, onNearlySpent: () => {} }),
    );
    const feed = new ListFeed(monotonic);
    const poller = new FleetPoller({ ...machine, inbox, feed, partner, pollEvery: config.vtn.pollEvery });
    const reader = new DeliveryReader(inbox, led, log, monotonic);
    const keys = new FleetSites(ofDeliveries, at.siteKeys, machine.randomBytes);
    const deliveries = new FleetDeliveries({ sites: keys, inbox, log, onStored: () => reader.readSoon() });
    const metrics = new SharedMetrics();
    const { webhook } = config;
    let unboundWebhook: string | null = null;
    const listener =
      webhook === null
        ? null
        : stop.use(
            "close the webhook",
            await FleetWebhook.start({ text, place, process: name, logLevel: log.level }, log, {
              onStored: () => reader.readSoon(),
              fetch: (ids) => void deliveries.fetch(ids, (id) => poller.event(id)),
              onUnbound: (fault) => (unboundWebhook = fault),
              onRefused: (reason) => metrics.webhookRefused(reason),
            }),
          );
    const record = stop.use("store what people changed", new FleetRecord(fleet, machine));
    const operator = stop.use(
      "close the operator listener",
      await fleetOperator(fleet, machine, { name, list, work, led, metrics, record }),
    );
    const profiles = loadProfiles(join(place.directory, "profiles"));
    const ports = { webhookPort: listener?.port ?? null, operatorPort: operator.port };
    const quota = new SharedPlaces(MOST_PUBLISHES, PUBLISH_COUNTS_FOR_MS);
    const room = roomForDispatches();
    const shared = {
      partner,
      metrics,
      ...ports,
      unboundWebhook: () => unboundWebhook,
      accessFault: () => operator.accessFault,
      quota,
      room,
    };
    const parts: SiteParts = { fleet, machine, database, feed, poller, profiles, shared };
    const checks = profileChecks(profiles);
    const ledSites = new LedSites({
      machine,
      database,
      sites,
      work,
      led,
      start: (own, stored, read) => startSite(parts, own, stored, read, checks),
    });
    const loops = new FleetLoops({
      fleet,
      name,
      page: pageAddress(config.operator, operator.port, hostname()),
      sites: ledSites,
      work,
      pruning: new FleetWork(database, term, monotonic),
      poller,
      reader,
      reports: new StateReports(list, led, monotonic),
      log,
    });
    stop.add("release the sites", () => loops.end());
    loops.begin();
    const certificates = new CertificatesInUse(config, { now, log, note: noteInLog(log) });
    const reload = (): void => {
      certificates.reload({ webhook: listener, operator });
      void reloadSites([...led.values()]);
    };
    return { ok: true, fleet: new FleetDaemon({ ...ports, reload }, ledSites, stop.move()) };
  }
}

/** Brings the schema and the keys of the sites up to date. A text: the reason why this process cannot work with them. */
async function prepare(
  database: Database,
  ofDeliveries: Database,
  sites: FleetSites,
  schema: Fleet["database"]["schema"],
  log: Logger,
): Promise<string | null> {
  try {
    const unusable = await migrate(database, schema);
    if (unusable !== null) return unusable;
    await warnOfVersion(database, log);
    await ofDeliveries.open(CONNECTIONS_OF_DELIVERIES);
    const again = await sites.encryptAgain();
    // A process that can read the keys of no site leads none, and takes sites and deliveries from those that could.
    if (typeof again === "string") return `state.postgres.siteKeys: ${again}`;
    if (again > 0)
      log.info({ sites: again }, "keys of sites are encrypted with the newest key of siteKeys now");
    return null;
  } catch (error) {
    const { reason, code } = faultOf(error);
    return `state.postgres.url: ${reason}; expected ${remedyOf(code)}`;
  }
}
