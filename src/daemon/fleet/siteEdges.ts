import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

import type { ProfileChecks } from "../../config/checks.ts";
import { explain } from "../../config/explain.ts";
import { type Fleet, storedSite } from "../../config/fleet.ts";
import type { Config } from "../../config/schema.ts";
import type { Opened } from "../../domain/store.ts";
import { between, type Millis, millis, seconds } from "../../domain/units.ts";
import type { SharedPlaces, SharedRoom } from "../../platform/cooperative.ts";
import type { OperatorViews } from "../../operator/http/views.ts";
import type { Metrics } from "../../operator/metrics.ts";
import { type Database, faultOf, isOfDatabase } from "../../store/postgres/database.ts";
import { editedFile, type StoredSite } from "../../store/postgres/fleetSites.ts";
import type { Lease } from "../../store/postgres/lease.ts";
import { openedAt } from "../../store/postgres/open.ts";
import type { StartRead } from "../../store/postgres/starts.ts";
import type { WebhookOptions } from "../../vtn/webhook.ts";
import { hasCertificates } from "../certificates.ts";
import { type App, start } from "../daemon.ts";
import type { Edges, EventService, Machine, Partner } from "../edges.ts";
import type { LoadedProfiles } from "../loadProfiles.ts";
import { realEdges } from "../real.ts";
import { LeadLost } from "../site.ts";
import type { FleetPoller, ListFeed } from "./partnerList.ts";

/** Edges that the sites of one process share. */
interface SharedEdges {
  /** Clients of the partner's account. */
  readonly partner: Partner;
  readonly metrics: Metrics;
  readonly webhookPort: number | null;
  readonly operatorPort: number;
  /** Reason why the webhook of the process does not listen. Null: it does. */
  readonly unboundWebhook: () => string | null;
  readonly accessFault: () => string | null;
  readonly quota: SharedPlaces;
  readonly room: SharedRoom;
}

/** A process with thousands of connections answers none within ten seconds at times. */
const TIMING = { keepalive: seconds(30) };

/** A site as the fleet reaches it. */
export interface SiteAccess {
  ingest: WebhookOptions["ingest"] | null;
  views: OperatorViews | null;
}

const NOTHING_REFUSED = { refused: () => ({}), refusedDeliveries: () => null };

/**
 * Edges of a site of a fleet: the real ones for time and chargers, and the shared ones for the partner and the
 * listeners. `own`: those of a single site.
 */
function siteEdges(
  own: Edges,
  shared: SharedEdges,
  site: {
    readonly config: Config;
    readonly open: () => Promise<Opened>;
    readonly lists: (ahead: () => Millis) => Pick<EventService, "list" | "event" | "wantList" | "settled">;
    readonly access: SiteAccess;
    readonly onControlFailed: (cause: unknown) => void;
    readonly log: Machine["log"];
  },
): Edges {
  const { partner, quota } = shared;
  const nothing = { [Symbol.asyncDispose]: async () => {} };
  return {
    ...own,
    log: site.log,
    onControlFailed: site.onControlFailed,
    metrics: shared.metrics,
    room: shared.room,
    openStore: site.open,
    chargers: (options) => own.chargers({ ...options, quota, timing: TIMING }),
    // A clock that is in doubt is ahead of that of the machine.
    partner: ({ now }) => ({
      ...partner,
      ...site.lists(() => between(own.now(), now())),
      reports: { ...partner.reports, close: async () => {} },
      ...nothing,
    }),
    webhook:
      site.config.webhook === null
        ? null
        : async ({ ingest }) => {
            // Other parts of the process call it: an error there is one of this site all the same.
            site.access.ingest = AsyncLocalStorage.bind(ingest);
            return {
              port: shared.webhookPort ?? 0,
              renew: () => null,
              get unbound() {
                return shared.unboundWebhook();
              },
              ...NOTHING_REFUSED,
              ...nothing,
            };
          },
    operator: async (views) => {
      void views.then((known) => (site.access.views = known));
      return {
        port: shared.operatorPort,
        renew: () => null,
        accessFault: shared.accessFault(),
        ...nothing,
      };
    },
    page: () => null,
    // The sockets belong to a process with one site.
    controlSocket: async () => nothing,
    statusSocket: async () => nothing,
  };
}

/** A site whose lease this process has. */
export interface LedSite extends SiteAccess {
  readonly site: string;
  readonly lease: Lease;
  readonly siteKey: Buffer;
  /** Resolves with the first error that no part of the site expected. */
  readonly failed: PromiseWithResolvers<unknown>;
  /** Null: it is being loaded. */
  app:
    | (Pick<App, "isBusy" | typeof Symbol.asyncDispose> & Partial<Pick<App, "state" | "stopStep" | "reload">>)
    | null;
  /** True: certificates were renewed while it was being loaded. */
  isStale?: boolean;
}

/** Sites read certificates again, one in each turn of the event loop. A site that is being loaded does so once it runs. */
export async function reloadSites(sites: readonly LedSite[]): Promise<void> {
  const running = sites.filter(({ app }) => app !== null);
  for (const own of sites) own.isStale = own.app === null;
  for (const own of running) {
    reloadSite(own);
    await nextTurn();
  }
}

/** The site reads its files and commits what it found. */
export function reloadSite(own: LedSite): void {
  own.isStale = false;
  try {
    own.app?.reload?.();
  } catch (error) {
    own.failed.resolve(error);
  }
}

/** Parts that all sites of a process share. */
export interface SiteParts {
  readonly fleet: Fleet;
  readonly machine: Machine;
  readonly database: Database;
  readonly feed: Pick<ListFeed, "siteOf">;
  readonly poller: Pick<FleetPoller, "event" | "wantList">;
  readonly profiles: LoadedProfiles;
  readonly shared: SharedEdges;
}

/**
 * Starts a site whose lease this process has, from what was read of it. A text: the reason why that is not possible.
 * Rejects with a bug.
 */
export async function startSite(
  { fleet, machine, database, feed, poller, profiles, shared }: SiteParts,
  own: LedSite,
  { site, file, siteKey, proofKey }: StoredSite,
  read: StartRead,
  checks: ProfileChecks,
): Promise<App | string> {
  const { lease } = own;
  if (file === null) return editedFile(site);
  const loaded = storedSite(fleet, JSON.parse(file), checks);
  if (!loaded.ok) return explain(loaded.mistakes, `the file of ${site}`);
  const config: Config = {
    ...loaded.config,
    // The next leader continues.
    control: { ...loaded.config.control, onStop: "keep", sharesAccount: true },
    // The process polls for all sites, and hands on each list at once.
    vtn: { ...loaded.config.vtn, pollEvery: millis(0) },
  };
  const log = machine.log.child({ site });
  const vehicles = config.vehicles.map(({ id }) => id);
  // A start that fails closes the store.
  lease.isRetained = true;
  // Not kept after it was opened.
  let unread: StartRead | undefined = read;
  const edges = siteEdges(realEdges(config, machine, profiles.profiles), shared, {
    config,
    open: async () => {
      const start = unread;
      unread = undefined;
      const from = { database: database.borrow(), site, siteKey, proofKey };
      return openedAt(from, lease, start, { ...machine, log, directory: fleet.shared.state });
    },
    lists: (ahead) => ({
      ...feed.siteOf(vehicles, (id) => poller.event(id), ahead),
      wantList: () => poller.wantList(),
    }),
    access: own,
    onControlFailed: own.failed.resolve,
    log,
  });
  const started = await start(config, edges).catch((error: unknown) => {
    if (isOfDatabase(error)) return { ok: false as const, reason: faultOf(error).reason };
    if (error instanceof LeadLost) return { ok: false as const, reason: error.message };
    throw error;
  });
  if (!started.ok) return started.reason;
  lease.isRetained = false;
  const { app } = started;
  // The signal arrives outside of the site. Thousands of sites would log that they have no certificate.
  return { ...app, reload: hasCertificates(config) ? AsyncLocalStorage.bind(app.reload) : () => {} };
}
