import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { Fleet } from "../../config/fleet.ts";
import { SITE_CHANGED } from "../../domain/leadership.ts";
import { faultOf, isOfDatabase } from "../../store/postgres/database.ts";
import type { FleetSnapshot, FleetWork } from "../../store/postgres/fleetWork.ts";
import type { DeliveryReader } from "./deliveries.ts";
import type { LedSites } from "./ledSites.ts";
import type { StateReports } from "./operator.ts";
import type { FleetPoller } from "./partnerList.ts";

/** Interval of reads of deliveries that other processes received, ms. */
const READ_EVERY_MS = 250;
/** Interval of reads of the other processes and of free sites, ms. */
const BALANCE_EVERY_MS = 1_000;
/** Interval of reports of the states of the sites, ms. */
const REPORT_EVERY_MS = 5_000;
const PRUNE_EVERY_MS = 3_600_000;

export interface FleetLoopsParts {
  readonly fleet: { readonly database: Pick<Fleet["database"], "lease"> } & Pick<Fleet, "sitesAtMost">;
  /** Name of this process. */
  readonly name: string;
  /** Address of its page for people. Null: no other machine reaches it. */
  readonly page: string | null;
  readonly sites: LedSites;
  readonly work: FleetWork;
  /** Work on connections that neither leases nor deliveries need. */
  readonly pruning: Pick<FleetWork, "prune">;
  readonly poller: Pick<FleetPoller, "poll" | "read" | "end">;
  readonly reader: Pick<DeliveryReader, "read">;
  readonly reports: Pick<StateReports, "report">;
  readonly log: Logger;
}

/** The repeated work of a process of a fleet: renew, take and give up sites, poll, read deliveries. */
export class FleetLoops {
  readonly #parts: FleetLoopsParts;
  readonly #ending = new AbortController();
  readonly #ended = new AbortController();
  readonly #loops: Promise<void>[] = [];
  #renewing: Promise<void> | null = null;
  #revision = -1;
  #snapshot: FleetSnapshot | null = null;

  constructor(parts: FleetLoopsParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { fleet, sites, work, pruning, reader, reports, poller } = this.#parts;
    const third = fleet.database.lease / 3;
    const renew = async (): Promise<void> => {
      await work.renew(sites.leases);
      if (!this.#ending.signal.aborted) await this.#alive();
    };
    this.#renewing = this.#loop(third, "the leases cannot be renewed", renew, this.#ended.signal);
    this.#repeat(BALANCE_EVERY_MS, "the fleet cannot be balanced", () => this.#balance());
    this.#repeat(READ_EVERY_MS, "deliveries cannot be read", () => reader.read());
    this.#repeat(1_000, "the list of the partner cannot be shared", async () => {
      await poller.poll(this.#snapshot?.wanted ?? 0);
      const { number, wanted } = await work.snapshot();
      await poller.read(number);
      if (this.#snapshot !== null) this.#snapshot = { ...this.#snapshot, wanted };
    });
    this.#repeat(REPORT_EVERY_MS, "the states of the sites cannot be reported", () => reports.report());
    this.#repeat(PRUNE_EVERY_MS, "old rows cannot be pruned", () => pruning.prune(this.#ending.signal));
  }

  /** Stops all sites. Their chargers stay as they are: another process leads them next. */
  async end(): Promise<void> {
    this.#ending.abort();
    // A partner that hangs must not keep the sites from the other processes.
    this.#parts.poller.end();
    await Promise.all(this.#loops);
    // The others take each site as soon as it is released. Until then its lease is renewed: many sites take longer than it.
    await this.#parts.work.leave().catch(faultOf);
    await this.#parts.sites.end();
    this.#ended.abort();
    await this.#renewing;
  }

  #repeat(every: number, failure: string, step: () => Promise<void>): void {
    this.#loops.push(this.#loop(every, failure, step, this.#ending.signal));
  }

  /** Repeats a step, from begin to begin, with a pause of half of that at least. A failure is logged once, and tried again. */
  async #loop(every: number, failure: string, step: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { log } = this.#parts;
    let hasFailed = false;
    while (!signal.aborted) {
      const began = performance.now();
      try {
        await step();
        hasFailed = false;
      } catch (error) {
        if (!hasFailed) log.error(isOfDatabase(error) ? faultOf(error) : { err: error }, failure);
        hasFailed = true;
      }
      const pause = Math.max(every / 2, every - (performance.now() - began));
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  }

  async #alive(): Promise<void> {
    const { fleet, page, sites, work } = this.#parts;
    await work.alive({ most: fleet.sitesAtMost, room: sites.room, page });
  }

  async #balance(): Promise<void> {
    const { work, sites, name } = this.#parts;
    const snapshot = await work.snapshot();
    await this.#alive();
    this.#snapshot = snapshot;
    await this.#followFiles(snapshot.revision);
    // The own leases may have ended while the database was away. Their renewal may be later than this.
    const processes = snapshot.processes.map((each) =>
      each.process === name ? { ...each, led: Math.max(each.led, sites.leases.length) } : each,
    );
    const { take, give } = moveOf({ ...snapshot, processes }, name);
    sites.give(give);
    await sites.take(take);
  }

  /** Starts sites again whose file changed, and stops those that were removed. */
  async #followFiles(revision: number): Promise<void> {
    const known = this.#revision;
    if (revision === known) return;
    const { work, sites } = this.#parts;
    const changed = known < 0 ? [] : await work.changedSince(known);
    this.#revision = revision;
    const removed = new Set(changed.flatMap(({ site, isRemoved }) => (isRemoved ? site : [])));
    for (const lease of sites.leases) if (removed.has(lease.site)) lease.lose(SITE_CHANGED);
    sites.startAgain(changed.map(({ site }) => site));
  }
}

/** Sites that a process should take, and sites that it should give up. One of them is zero. */
export interface Move {
  readonly take: number;
  readonly give: number;
}

/** Part of the sites too many that a process gives up at once, so that the others can load them. */
const PART_GIVEN_UP = 0.2;

/**
 * The even share of each process, none above its `most`. A process takes free sites up to its share, and those that the
 * others have no room for now: a machine that starts sites slowly must not keep them without a leader. It gives up sites
 * only while another process is below its share and has room.
 */
export function moveOf({ sites, processes }: Pick<FleetSnapshot, "sites" | "processes">, self: string): Move {
  const level = levelOf(
    sites,
    processes.map(({ most }) => most),
  );
  const missingOf = ({ most, led }: (typeof processes)[number]): number => Math.min(most, level) - led;
  const own = processes.find(({ process }) => process === self);
  if (own === undefined) return { take: 0, give: 0 };
  const missing = missingOf(own);
  if (missing > 0) return { take: missing, give: 0 };
  const free = Math.max(0, sites - sum(processes.map(({ led }) => led)));
  const wanted = sum(processes.map((each) => Math.max(0, Math.min(missingOf(each), each.room))));
  const left = Math.min(free - wanted, own.most - own.led);
  if (left > 0) return { take: left, give: 0 };
  return {
    take: 0,
    give: Math.min(Math.max(0, wanted - free), Math.ceil(Math.abs(missing) * PART_GIVEN_UP)),
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** The lowest level at which all sites are led: each process leads that many, or its most. */
function levelOf(sites: number, most: readonly number[]): number {
  let [low, high] = [0, Math.max(0, ...most)];
  while (low < high) {
    const level = Math.floor((low + high) / 2);
    const led = most.reduce((sum, limit) => sum + Math.min(limit, level), 0);
    if (led >= sites) high = level;
    else low = level + 1;
  }
  return low;
}
