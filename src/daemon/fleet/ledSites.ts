import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

import { inParallel } from "../../platform/cooperative.ts";
import { messageOf } from "../../platform/text.ts";
import { type Database, faultOf, isOfDatabase } from "../../store/postgres/database.ts";
import type { FleetSites, StoredSite } from "../../store/postgres/fleetSites.ts";
import type { FleetWork } from "../../store/postgres/fleetWork.ts";
import type { Lease } from "../../store/postgres/lease.ts";
import { readStarts, type StartRead } from "../../store/postgres/starts.ts";
import type { App } from "../daemon.ts";
import type { Machine } from "../edges.ts";
import { BackOffs, TRY_AGAIN_MS } from "./backOffs.ts";
import { type LedSite, reloadSite } from "./siteEdges.ts";

/** Sites that are stopped at the same time, and sites that are read by one statement. */
const AT_ONCE = 16;
/** Readers of sites. While one of them starts sites, another reads the next. */
const READERS = 2;
/** Sites that are taken and do not run yet, at most. Other processes take the others. */
const MOST_STARTING = 96;
/** Longest wait for some sites that start, ms, before the next ones start beside them. */
const START_WITHIN_MS = 5_000;
/** Time after which a start counts as hanging, ms. The largest sites start in a fraction of it. */
const START_HANGS_AFTER_MS = 120_000;
/** Longest orderly stop of a site, ms. */
const STOP_WITHIN_MS = 20_000;

export interface LedSitesParts {
  readonly machine: Pick<Machine, "now" | "monotonic" | "log">;
  readonly database: Database;
  readonly sites: Pick<FleetSites, "read">;
  readonly work: Pick<FleetWork, "take">;
  readonly led: Map<string, LedSite>;
  /** Starts a site whose lease this process has. A text: the reason why that is not possible. Rejects with a bug. */
  readonly start: (own: LedSite, stored: StoredSite, read: StartRead) => Promise<App | string>;
  /** Longest orderly stop of a site, ms. */
  readonly stopWithin?: number;
  /** Longest start of a site, ms. */
  readonly startWithin?: number;
}

/** The sites of this process: taken, read, started, stopped, given up. Methods that return `void` fail by no error. */
export class LedSites {
  readonly #parts: LedSitesParts;
  readonly #ending = new AbortController();
  /** Leases of sites that are led, and of those that cannot be led for now. */
  readonly #leases = new Set<Lease>();
  readonly #backOffs = new BackOffs((lease) => this.#giveUp(lease));
  /** Sites that are to be read and started. */
  readonly #waiting: Lease[] = [];
  /** Those, and the ones that start now. */
  readonly #starting = new Set<Lease>();
  /** Free sites that this process may take. */
  #wanted = 0;
  #isTaking = false;
  readonly #readers = new Set<Promise<void>>();
  readonly #stopping = new Set<LedSite>();
  readonly #stops = new Set<Promise<void>>();
  /** Sites whose file changed while they were read or started. */
  readonly #changed = new Set<string>();
  /** The site that runs: timers, sockets and promises that it made continue as that site. */
  readonly #running = new AsyncLocalStorage<LedSite>();

  constructor(parts: LedSitesParts) {
    this.#parts = parts;
  }

  /** Number of sites that are led, or started. */
  get size(): number {
    return this.#parts.led.size;
  }

  /** Sites that this process can start now. */
  get room(): number {
    return MOST_STARTING - this.#starting.size;
  }

  get leases(): readonly Lease[] {
    return [...this.#leases].filter(({ state }) => state !== "lost");
  }

  /**
   * Ends the site that threw this error, where a site did. Call it in the handler of uncaught errors. False: it is not an
   * error of a site.
   */
  contain(error: unknown): boolean {
    const own = this.#running.getStore();
    if (own === undefined) return false;
    const { site, failed } = own;
    if (this.#parts.led.get(site) === own) failed.resolve(error);
    else this.#parts.machine.log.error({ site, err: error }, "a bug in a site that is not led any more");
    return true;
  }

  /** Takes free sites up to this number, as fast as they start. Throws errors of the database. */
  async take(most: number): Promise<void> {
    this.#wanted = most;
    await this.#takeSome();
  }

  async #takeSome(): Promise<void> {
    const { led, work } = this.#parts;
    if (this.#isTaking) return;
    this.#isTaking = true;
    try {
      // Few at a time would be many statements.
      while (this.#wanted > 0 && this.room >= MOST_STARTING / 2 && !this.#ending.signal.aborted) {
        const own = [...this.leases, ...led.values(), ...this.#stopping].map(({ site }) => site);
        const leases = await work.take(Math.min(this.#wanted, this.room), own);
        this.#wanted = leases.length === 0 ? 0 : this.#wanted - leases.length;
        for (const lease of leases) {
          this.#leases.add(lease);
          this.#starting.add(lease);
          this.#waiting.push(lease);
        }
        this.#startReaders();
      }
    } finally {
      this.#isTaking = false;
    }
  }

  #startReaders(): void {
    while (this.#readers.size < READERS && this.#waiting.length > 0) {
      const reader = this.#leadWaiting().finally(() => this.#readers.delete(reader));
      this.#readers.add(reader);
    }
  }

  /** Gives up to so many idle sites to other processes, those included that stop already. */
  give(most: number): void {
    const { led, machine } = this.#parts;
    const more = Math.max(0, most - this.#stopping.size);
    const idle = [...led.values()].filter(({ app }) => app !== null && !app.isBusy()).slice(0, more);
    if (idle.length === 0) return;
    machine.log.info({ sites: idle.length }, "idle sites are given to another process");
    this.#stopAll(idle);
  }

  /** Starts sites again whose file changed, and stops those that were removed. A new file ends the back-off of its site. */
  startAgain(changed: readonly string[]): void {
    this.#backOffs.end(changed);
    const own = new Set(this.leases.map(({ site }) => site));
    for (const site of changed) if (own.has(site)) this.#changed.add(site);
    this.#stopAll(changed.flatMap((site) => this.#parts.led.get(site) ?? []));
  }

  #stopAll(sites: readonly LedSite[]): void {
    const stops = inParallel(AT_ONCE, sites, (site) => this.#stop(site)).finally(() =>
      this.#stops.delete(stops),
    );
    this.#stops.add(stops);
  }

  /** Stops all sites. Their chargers stay as they are: another process leads them next. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#readers);
    this.#stopAll([...this.#parts.led.values()]);
    await Promise.all(this.#stops);
    // Sites in their back-off, and those that start still.
    await inParallel(AT_ONCE, [...this.#leases], (lease) => this.#giveUp(lease));
  }

  /** Leads sites until none waits. */
  async #leadWaiting(): Promise<void> {
    const { led, machine } = this.#parts;
    while (this.#waiting.length > 0 && !this.#ending.signal.aborted) {
      const some = this.#leadSome(this.#waiting.splice(0, AT_ONCE));
      // A start that hangs takes up room, but no reader.
      await Promise.race([some, sleep(START_WITHIN_MS, undefined, { ref: false })]);
      // Fails again, and is reported, at the next turn of the balance.
      await this.#takeSome().catch(faultOf);
    }
    if (this.#readers.size === 1) machine.log.info({ led: led.size }, "this process leads sites");
  }

  async #leadSome(some: readonly Lease[]): Promise<void> {
    const { sites, database, machine } = this.#parts;
    let stored: ReadonlyMap<string, StoredSite | string> = new Map();
    let starts: Awaited<ReturnType<typeof readStarts>> = new Map();
    let unread = "it was removed";
    let bug: unknown;
    for (const { site } of some) this.#changed.delete(site);
    try {
      stored = await sites.read(some.map(({ site }) => site));
      const usable = [...stored.values()].filter((each) => typeof each !== "string");
      starts = await readStarts(database, usable, machine.now());
    } catch (error) {
      bug = isOfDatabase(error) ? undefined : error;
      unread = bug === undefined ? faultOf(error).reason : messageOf(bug);
      // The stored rows of one site must not harm the sites that are read with it.
      if (bug !== undefined && some.length > 1)
        return inParallel(AT_ONCE, some, (one) => this.#leadSome([one]));
    }
    const started = some.map(async (lease) => {
      const [found, start] = [stored.get(lease.site), starts.get(lease.site)];
      const reason = await this.#lead(lease, found ?? unread, start ?? unread);
      this.#starting.delete(lease);
      if (reason === null) return;
      machine.log.error({ site: lease.site, reason, err: bug }, "a site cannot be led");
      this.#backOffs.begin(lease, TRY_AGAIN_MS);
    });
    await Promise.all(started);
  }

  async #giveUp(lease: Lease): Promise<void> {
    this.#leases.delete(lease);
    lease.isRetained = false;
    await lease.release();
  }

  /** Leads a site. A text: the reason why that is not possible. */
  async #lead(lease: Lease, stored: StoredSite | string, read: StartRead | string): Promise<string | null> {
    if (typeof stored === "string") return stored;
    if (typeof read === "string") return read;
    // Starts of many sites must not block the event loop together.
    await nextTurn();
    if (lease.state === "lost") return "another process leads it";
    const { led, startWithin = START_HANGS_AFTER_MS } = this.#parts;
    const { site, siteKey } = stored;
    const failed = Promise.withResolvers<unknown>();
    const own: LedSite = { site, lease, siteKey, failed, app: null, ingest: null, views: null };
    led.set(site, own);
    // No function holds the stored site: it would stay in memory as long as the site is led.
    const starting = this.#running.run(own, this.#parts.start, own, stored, read).catch((bug: unknown) => {
      this.#running.run(own, () => this.contain(bug));
      return null;
    });
    const late = Promise.withResolvers<string>();
    const hangs = `its start did not end within ${startWithin / 1_000} s`;
    const timer = setTimeout(late.resolve, startWithin, hangs);
    const started = await Promise.race([starting, failed.promise.then(() => null), late.promise]);
    clearTimeout(timer);
    // A start that hangs is stopped whenever it ends.
    const whenever = { [Symbol.asyncDispose]: async () => dispose(await starting), isBusy: () => false };
    if (typeof started === "string") {
      led.delete(site);
      void this.#dispose(own, whenever);
      return started;
    }
    void failed.promise.then((cause) => this.#fail(own, cause));
    own.app = started ?? whenever;
    if (own.isStale === true) reloadSite(own);
    void started?.lost.then(() => this.#stop(own));
    // `#fail` logs a bug and stops its site.
    if (started !== null && (this.#changed.has(site) || this.#ending.signal.aborted)) await this.#stop(own);
    return null;
  }

  /** Stops a site with a bug, and releases it after a back-off. The other sites continue. */
  async #fail(own: LedSite, cause: unknown): Promise<void> {
    const { site, lease } = own;
    if (this.#parts.led.get(site) !== own) return;
    const { log, monotonic } = this.#parts.machine;
    const { count, wait } = this.#backOffs.failed(site, monotonic());
    log.error(
      { site, err: cause, failures: count, againInS: wait / 1_000 },
      "a bug ended control of a site: it is led again later, and the other sites continue",
    );
    lease.isRetained = true;
    await this.#stop(own);
    // Renewed until the back-off ends, unless this process ends first. A file that was changed meanwhile ended it already.
    if (this.#ending.signal.aborted) return this.#giveUp(lease);
    this.#leases.add(lease);
    this.#backOffs.begin(lease, this.#changed.has(site) ? 0 : wait);
  }

  async #stop(own: LedSite): Promise<void> {
    const { led, machine, stopWithin = STOP_WITHIN_MS } = this.#parts;
    const { app, site, lease } = own;
    if (app === null || led.get(site) !== own) return;
    led.delete(site);
    this.#stopping.add(own);
    const isOver = await Promise.race([this.#dispose(own, app), sleep(stopWithin, false, { ref: false })]);
    this.#stopping.delete(own);
    // The store released the lease. Where it does not, the lease ends by itself.
    this.#leases.delete(lease);
    if (isOver) return;
    machine.log.error(
      { site, step: app.stopStep?.() ?? null },
      "a site does not stop: its lease is not renewed any more, and the site is led again when that ends",
    );
  }

  async #dispose({ site, lease }: LedSite, app: AsyncDisposable): Promise<true> {
    try {
      await app[Symbol.asyncDispose]();
    } catch (error) {
      this.#parts.machine.log.error({ site, err: error }, "a site did not stop in order");
      await lease.release();
    }
    return true;
  }
}

const dispose = async (started: App | string | null): Promise<void> => {
  if (typeof started === "object") await started?.[Symbol.asyncDispose]();
};
