import { setTimeout as sleep } from "node:timers/promises";

import type { ProfileChecks } from "../../config/checks.ts";
import { explain } from "../../config/explain.ts";
import { type Fleet, storedSite } from "../../config/fleet.ts";
import type { Config } from "../../config/schema.ts";
import { type Database, faultOf } from "../../store/postgres/database.ts";
import type { FleetInbox } from "../../store/postgres/fleetInbox.ts";
import { editedFile, type FleetSites, type StoredSite } from "../../store/postgres/fleetSites.ts";
import type { FleetSnapshot, FleetWork } from "../../store/postgres/fleetWork.ts";
import type { Lease } from "../../store/postgres/lease.ts";
import { openLed } from "../../store/postgres/open.ts";
import { profileChecks } from "../chargerModels.ts";
import { type App, start } from "../daemon.ts";
import type { Machine } from "../edges.ts";
import type { LoadedProfiles } from "../loadProfiles.ts";
import { realEdges } from "../real.ts";
import { moveOf } from "./balance.ts";
import type { DeliveryReader } from "./deliveries.ts";
import type { ListFeed } from "./listFeed.ts";
import type { FleetPoller } from "./poller.ts";
import { type SharedEdges, type SiteAccess, siteEdges } from "./siteEdges.ts";

/** Interval of reads of deliveries that other processes received, ms. */
const READ_EVERY_MS = 250;
/** Interval of reads of the other processes and of free sites, ms. */
const BALANCE_EVERY_MS = 1_000;
/** Sites that are loaded, or stopped, at the same time. */
const AT_ONCE = 16;
/** Cap on sites whose leases are taken at a time. */
const MOST_TAKEN = 500;
/** Time until a site that cannot be led is tried again, ms. */
const TRY_AGAIN_MS = 10_000;
/** Longest time until a site whose control failed is led again, ms. It doubles with each failure. */
const LONGEST_BACKOFF_MS = 300_000;
/** A failure that is older does not count for the back-off, ms. */
const FORGOTTEN_AFTER_MS = 3_600_000;
/** Longest orderly stop of a site whose control failed, ms. */
const STOP_WITHIN_MS = 20_000;
const PRUNE_EVERY_MS = 3_600_000;

/** A site whose lease this process has. */
export interface LedSite extends SiteAccess {
  readonly site: string;
  readonly lease: Lease;
  readonly siteKey: Buffer;
  /** Null: it is being loaded. */
  app: App | null;
}

export interface FleetParts {
  readonly fleet: Fleet;
  readonly machine: Machine;
  /** Name of this process. */
  readonly name: string;
  readonly database: Database;
  readonly sites: FleetSites;
  readonly work: FleetWork;
  readonly inbox: FleetInbox;
  readonly led: Map<string, LedSite>;
  readonly feed: ListFeed;
  readonly poller: FleetPoller;
  readonly reader: DeliveryReader;
  readonly profiles: LoadedProfiles;
  readonly shared: SharedEdges;
}

/** The repeated work of a process of a fleet: renew, take and give up sites, poll, read deliveries. */
export class FleetLoops {
  readonly #parts: FleetParts;
  readonly #profileChecks: ProfileChecks;
  readonly #ending = new AbortController();
  readonly #loops: Promise<void>[] = [];
  /** Leases of sites that are led, and of those that cannot be led for now. */
  readonly #leases = new Set<Lease>();
  /** Failures of control by site. Monotonic clock, ms. */
  readonly #failures = new Map<string, { readonly count: number; readonly at: number }>();
  #revision = -1;
  #snapshot: FleetSnapshot | null = null;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#profileChecks = profileChecks(parts.profiles);
  }

  begin(): void {
    const { fleet, work, inbox, reader, poller } = this.#parts;
    const third = fleet.database.lease / 3;
    this.#repeat(third, "the leases cannot be renewed", async () => {
      await work.renew([...this.#leases]);
      await work.alive(fleet.sitesAtMost);
    });
    this.#repeat(BALANCE_EVERY_MS, "the fleet cannot be balanced", () => this.#balance());
    this.#repeat(READ_EVERY_MS, "deliveries cannot be read", () => reader.read());
    this.#repeat(1_000, "the list of the partner cannot be shared", async () => {
      await poller.poll(this.#snapshot?.wanted ?? 0);
      const { number, wanted } = await work.snapshot();
      await poller.read(number);
      if (this.#snapshot !== null) this.#snapshot = { ...this.#snapshot, wanted };
    });
    this.#repeat(PRUNE_EVERY_MS, "old rows cannot be pruned", () => inbox.prune());
  }

  /** Stops all sites. Their chargers stay as they are: another process leads them next. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#loops);
    await inParallel([...this.#parts.led.values()], (led) => this.#stop(led));
    // Sites in their back-off.
    await inParallel([...this.#leases], (lease) => this.#giveUp(lease));
    await this.#parts.work.leave().catch(faultOf);
  }

  /** Repeats a step. A failure is logged once, and tried again. */
  #repeat(every: number, failure: string, step: () => Promise<void>): void {
    const { log } = this.#parts.machine;
    const { signal } = this.#ending;
    let hasFailed = false;
    const loop = async (): Promise<void> => {
      while (!signal.aborted) {
        try {
          await step();
          hasFailed = false;
        } catch (error) {
          if (!hasFailed) log.error(faultOf(error), failure);
          hasFailed = true;
        }
        await sleep(every, undefined, { signal }).catch(() => {});
      }
    };
    this.#loops.push(loop());
  }

  async #balance(): Promise<void> {
    const { work, led, name, machine } = this.#parts;
    const snapshot = await work.snapshot();
    this.#snapshot = snapshot;
    await this.#followFiles(snapshot.revision);
    const { take, give } = moveOf(snapshot, name);
    const idle = [...led.values()].filter(({ app }) => app !== null && !app.isBusy()).slice(0, give);
    if (idle.length > 0) {
      machine.log.info({ sites: idle.length }, "idle sites are given to another process");
      await inParallel(idle, (site) => this.#stop(site));
    }
    if (take === 0) return;
    const leases = await work.take(Math.min(take, MOST_TAKEN));
    if (leases.length === 0) return;
    for (const lease of leases) this.#leases.add(lease);
    await this.#leadAll(leases);
  }

  /** Starts sites again whose file changed, and stops those that were removed. */
  async #followFiles(revision: number): Promise<void> {
    const { work, led } = this.#parts;
    const known = this.#revision;
    if (revision === known) return;
    const changed = known < 0 ? [] : await work.changedSince(known);
    this.#revision = revision;
    await inParallel(
      changed.flatMap((site) => led.get(site) ?? []),
      (site) => this.#stop(site),
    );
  }

  async #leadAll(leases: readonly Lease[]): Promise<void> {
    const { sites, machine } = this.#parts;
    const { log } = machine;
    const read = await sites
      .read(leases.map(({ site }) => site))
      .catch((error: unknown) => faultOf(error).reason);
    await inParallel(leases, async (lease) => {
      const found = typeof read === "string" ? read : (read.get(lease.site) ?? "it was removed");
      const reason = typeof found === "string" ? found : await this.#lead(lease, found);
      if (reason === null) return;
      log.error({ site: lease.site, reason }, "a site cannot be led");
      // Until then no other process tries it either.
      setTimeout(() => void this.#giveUp(lease), TRY_AGAIN_MS).unref();
    });
    log.info({ led: this.#parts.led.size }, "this process leads sites");
  }

  async #giveUp(lease: Lease): Promise<void> {
    this.#leases.delete(lease);
    lease.isRetained = false;
    await lease.release();
  }

  /** Leads a site. A text: the reason why that is not possible. */
  async #lead(lease: Lease, { site, file, siteKey, proofKey }: StoredSite): Promise<string | null> {
    const { fleet, machine, database, led, feed, poller, profiles, shared } = this.#parts;
    if (file === null) return editedFile(site);
    const loaded = storedSite(fleet, JSON.parse(file), this.#profileChecks);
    if (!loaded.ok) return explain(loaded.mistakes, `the file of ${site}`);
    const config: Config = {
      ...loaded.config,
      // The next leader continues.
      control: { ...loaded.config.control, onStop: "keep" },
    };
    const own: LedSite = { site, lease, siteKey, app: null, ingest: null, views: null };
    const log = machine.log.child({ site });
    const vehicles = new Set<string>(config.vehicles.map(({ id }) => id));
    led.set(site, own);
    const failed = Promise.withResolvers<unknown>();
    // A start that fails closes the store.
    lease.isRetained = true;
    const edges = siteEdges(realEdges(config, machine, profiles.profiles), shared, {
      config,
      open: () =>
        openLed({ database: database.borrow(), site, siteKey, proofKey }, lease, { ...machine, log }),
      lists: feed.siteOf(vehicles, (id) => poller.event(id)),
      access: own,
      onControlFailed: failed.resolve,
      log,
    });
    const started = await start(config, edges).catch((error: unknown) => ({
      ok: false as const,
      reason: faultOf(error).reason,
    }));
    if (!started.ok) {
      led.delete(site);
      return started.reason;
    }
    lease.isRetained = false;
    own.app = started.app;
    void started.app.lost.then(() => this.#stop(own));
    void failed.promise.then((cause) => this.#fail(own, cause));
    return null;
  }

  /** Stops a site whose control failed, which is a bug, and releases it after a back-off. The other sites continue. */
  async #fail(own: LedSite, cause: unknown): Promise<void> {
    const { site, lease } = own;
    if (this.#parts.led.get(site) !== own) return;
    const { log, monotonic } = this.#parts.machine;
    const last = this.#failures.get(site);
    const at = monotonic();
    const count = last === undefined || at - last.at > FORGOTTEN_AFTER_MS ? 1 : last.count + 1;
    this.#failures.set(site, { count, at });
    const wait = Math.min(TRY_AGAIN_MS * 2 ** (count - 1), LONGEST_BACKOFF_MS);
    log.error(
      { site, err: cause, failures: count, againInS: wait / 1_000 },
      "a bug ended control of a site: it is led again later, and the other sites continue",
    );
    lease.isRetained = true;
    const stopped = this.#stop(own).catch((error: unknown) =>
      log.error({ site, err: error }, "a site whose control failed did not stop in order"),
    );
    await Promise.race([stopped, sleep(STOP_WITHIN_MS, undefined, { ref: false })]);
    // Renewed until the back-off ends, unless this process ends first.
    if (this.#ending.signal.aborted) return this.#giveUp(lease);
    this.#leases.add(lease);
    setTimeout(() => void this.#giveUp(lease), wait).unref();
  }

  async #stop(own: LedSite): Promise<void> {
    const { led } = this.#parts;
    const { app } = own;
    if (app === null || led.get(own.site) !== own) return;
    led.delete(own.site);
    await app[Symbol.asyncDispose]();
    // The store released the lease.
    this.#leases.delete(own.lease);
  }
}

/** Does the work for all, a few at a time. */
async function inParallel<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  const rest = all.values();
  const worker = async (): Promise<void> => {
    for (const each of rest) await work(each);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
