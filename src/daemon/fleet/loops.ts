import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

import type { ProfileChecks } from "../../config/checks.ts";
import { inParallel } from "../../platform/cooperative.ts";
import { faultOf } from "../../store/postgres/database.ts";
import type { FleetInbox } from "../../store/postgres/fleetInbox.ts";
import type { FleetSites, StoredSite } from "../../store/postgres/fleetSites.ts";
import type { FleetSnapshot, FleetWork } from "../../store/postgres/fleetWork.ts";
import type { Lease } from "../../store/postgres/lease.ts";
import { readStarts, type StartRead } from "../../store/postgres/starts.ts";
import { profileChecks } from "../chargerModels.ts";
import type { App } from "../daemon.ts";
import { moveOf } from "./balance.ts";
import type { DeliveryReader } from "./deliveries.ts";
import type { ListFeed } from "./listFeed.ts";
import type { StateReports } from "./operator.ts";
import type { FleetPoller } from "./poller.ts";
import { type LedSite, type SiteParts, startSite } from "./siteEdges.ts";

/** Interval of reads of deliveries that other processes received, ms. */
const READ_EVERY_MS = 250;
/** Interval of reads of the other processes and of free sites, ms. */
const BALANCE_EVERY_MS = 1_000;
/** Sites that are stopped at the same time, and sites that are read by one statement. */
const AT_ONCE = 16;
/** Readers of sites. While one of them starts sites, another reads the next. */
const READERS = 2;
/** Time until a site that cannot be led is tried again, ms. */
const TRY_AGAIN_MS = 10_000;
/** Longest time until a site whose control failed is led again, ms. It doubles with each failure. */
const LONGEST_BACKOFF_MS = 300_000;
/** A failure that is older does not count for the back-off, ms. */
const FORGOTTEN_AFTER_MS = 3_600_000;
/** Longest orderly stop of a site whose control failed, ms. */
const STOP_WITHIN_MS = 20_000;
/** Interval of reports of the states of the sites, ms. */
const REPORT_EVERY_MS = 5_000;
const PRUNE_EVERY_MS = 3_600_000;

export interface FleetParts extends SiteParts {
  /** Name of this process. */
  readonly name: string;
  /** Address of its page for people. Null: no other machine reaches it. */
  readonly page: string | null;
  readonly sites: FleetSites;
  readonly work: FleetWork;
  readonly inbox: FleetInbox;
  readonly led: Map<string, LedSite>;
  readonly feed: ListFeed;
  readonly poller: FleetPoller;
  readonly reader: DeliveryReader;
  readonly reports: StateReports;
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
  /** Sites that are to be read and started. */
  readonly #waiting: Lease[] = [];
  readonly #readers = new Set<Promise<void>>();
  /** Sites whose file changed while they were read or started. */
  readonly #changed = new Set<string>();
  /** The site that runs: timers, sockets and promises that it made continue as that site. */
  readonly #running = new AsyncLocalStorage<LedSite>();
  #revision = -1;
  #snapshot: FleetSnapshot | null = null;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#profileChecks = profileChecks(parts.profiles);
  }

  begin(): void {
    const { fleet, page, work, inbox, reader, reports, poller } = this.#parts;
    const third = fleet.database.lease / 3;
    this.#repeat(third, "the leases cannot be renewed", async () => {
      await work.renew([...this.#leases]);
      await work.alive(fleet.sitesAtMost, page);
    });
    this.#repeat(BALANCE_EVERY_MS, "the fleet cannot be balanced", () => this.#balance());
    this.#repeat(READ_EVERY_MS, "deliveries cannot be read", () => reader.read());
    this.#repeat(1_000, "the list of the partner cannot be shared", async () => {
      await poller.poll(this.#snapshot?.wanted ?? 0);
      const { number, wanted } = await work.snapshot();
      await poller.read(number);
      if (this.#snapshot !== null) this.#snapshot = { ...this.#snapshot, wanted };
    });
    this.#repeat(REPORT_EVERY_MS, "the states of the sites cannot be reported", () => reports.report());
    this.#repeat(PRUNE_EVERY_MS, "old rows cannot be pruned", () => inbox.prune());
  }

  /**
   * Ends the site that threw this error, where a site did. Call it in the handler of uncaught errors. False: it is not an
   * error of a site.
   */
  contain(error: unknown): boolean {
    const own = this.#running.getStore();
    if (own === undefined) return false;
    if (this.#parts.led.get(own.site) === own) own.failed.resolve(error);
    else
      this.#parts.machine.log.error(
        { site: own.site, err: error },
        "a bug in a site that is not led any more",
      );
    return true;
  }

  /** Stops all sites. Their chargers stay as they are: another process leads them next. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all([...this.#loops, ...this.#readers]);
    await inParallel(AT_ONCE, [...this.#parts.led.values()], (led) => this.#stop(led));
    // Sites in their back-off.
    await inParallel(AT_ONCE, [...this.#leases], (lease) => this.#giveUp(lease));
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
      await inParallel(AT_ONCE, idle, (site) => this.#stop(site));
    }
    if (take === 0) return;
    const leases = await work.take(take);
    for (const lease of leases) {
      this.#leases.add(lease);
      this.#waiting.push(lease);
    }
    // The next leases are taken meanwhile.
    while (this.#readers.size < READERS && this.#waiting.length > 0) {
      const reader = this.#leadWaiting().finally(() => this.#readers.delete(reader));
      this.#readers.add(reader);
    }
  }

  /** Starts sites again whose file changed, and stops those that were removed. */
  async #followFiles(revision: number): Promise<void> {
    const { work, led } = this.#parts;
    const known = this.#revision;
    if (revision === known) return;
    const changed = known < 0 ? [] : await work.changedSince(known);
    this.#revision = revision;
    const own = new Set([...this.#leases].map(({ site }) => site));
    for (const site of changed) if (own.has(site)) this.#changed.add(site);
    await inParallel(
      AT_ONCE,
      changed.flatMap((site) => led.get(site) ?? []),
      (site) => this.#stop(site),
    );
  }

  /** Leads sites until none waits. */
  async #leadWaiting(): Promise<void> {
    const { led, machine } = this.#parts;
    while (this.#waiting.length > 0 && !this.#ending.signal.aborted)
      await this.#leadSome(this.#waiting.splice(0, AT_ONCE));
    if (this.#readers.size === 1) machine.log.info({ led: led.size }, "this process leads sites");
  }

  async #leadSome(leases: readonly Lease[]): Promise<void> {
    const { sites, database, machine } = this.#parts;
    let stored: ReadonlyMap<string, StoredSite | string> = new Map();
    let starts: Awaited<ReturnType<typeof readStarts>> = new Map();
    let unread = "it was removed";
    for (const { site } of leases) this.#changed.delete(site);
    try {
      stored = await sites.read(leases.map(({ site }) => site));
      const usable = [...stored.values()].filter((each) => typeof each !== "string");
      starts = await readStarts(database, usable, machine.now());
    } catch (error) {
      unread = faultOf(error).reason;
    }
    const started = leases.map(async (lease) => {
      const found = stored.get(lease.site) ?? unread;
      const start = starts.get(lease.site) ?? unread;
      const reason =
        typeof found === "string"
          ? found
          : typeof start === "string"
            ? start
            : await this.#lead(lease, found, start);
      if (reason === null) return;
      machine.log.error({ site: lease.site, reason }, "a site cannot be led");
      // Until then no other process tries it either.
      setTimeout(() => void this.#giveUp(lease), TRY_AGAIN_MS).unref();
    });
    await Promise.all(started);
  }

  async #giveUp(lease: Lease): Promise<void> {
    this.#leases.delete(lease);
    lease.isRetained = false;
    await lease.release();
  }

  /** Leads a site. A text: the reason why that is not possible. */
  async #lead(lease: Lease, stored: StoredSite, read: StartRead): Promise<string | null> {
    // Starts of many sites must not block the event loop together.
    await nextTurn();
    if (lease.state === "lost") return "another process leads it";
    const { led } = this.#parts;
    const { site, siteKey } = stored;
    const failed = Promise.withResolvers<unknown>();
    const own: LedSite = { site, lease, siteKey, failed, app: null, ingest: null, views: null };
    led.set(site, own);
    const starting = this.#running.run(own, () =>
      startSite(this.#parts, own, stored, read, this.#profileChecks),
    );
    const started = await Promise.race([starting, failed.promise.then(() => null)]);
    if (typeof started === "string") {
      led.delete(site);
      return started;
    }
    void failed.promise.then((cause) => this.#fail(own, cause));
    // The start may hang because of that error. It is stopped whenever it ends.
    own.app = started ?? { [Symbol.asyncDispose]: async () => dispose(await starting), isBusy: () => false };
    void started?.lost.then(() => this.#stop(own));
    if (this.#changed.has(site)) await this.#stop(own);
    return null;
  }

  /** Stops a site with a bug, and releases it after a back-off. The other sites continue. */
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
    await Promise.race([this.#stop(own), sleep(STOP_WITHIN_MS, undefined, { ref: false })]);
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
    try {
      await app[Symbol.asyncDispose]();
    } catch (error) {
      this.#parts.machine.log.error({ site: own.site, err: error }, "a site did not stop in order");
      await own.lease.release();
    }
    // The store released the lease.
    this.#leases.delete(own.lease);
  }
}

const dispose = async (started: App | string): Promise<void> => {
  if (typeof started !== "string") await started[Symbol.asyncDispose]();
};
