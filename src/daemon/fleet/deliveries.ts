import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";

import type { Delivery, IngestAnswer, Notice } from "../../domain/delivery.ts";
import type { EventId } from "../../domain/units.ts";
import { inBatches, SharedPlaces } from "../../platform/cooperative.ts";
import { faultOf } from "../../store/postgres/database.ts";
import type { FleetInbox, SiteDelivery } from "../../store/postgres/fleetInbox.ts";
import type { FleetSites } from "../../store/postgres/fleetSites.ts";
import { deliveryMac } from "../../store/postgres/inbox.ts";
import type { Lease } from "../../store/postgres/lease.ts";
import { DeliveryFailures } from "../deliveryFailures.ts";
import type { EventService } from "../edges.ts";
import {
  type Deleted,
  eventsIn,
  isForAll,
  type Known,
  type Routes,
  routesOf,
  targetsIn,
  unreadable,
} from "./routing.ts";
import type { SiteAccess } from "./siteEdges.ts";

interface DeliveriesParts {
  readonly sites: FleetSites;
  readonly inbox: Pick<FleetInbox, "sitesOf" | "all" | "deleted" | "put" | "wantList">;
  readonly log: Logger;
  /** Called after each commit. */
  readonly onStored: () => void;
}

const NOTHING: ReadonlyMap<string, Deleted> = new Map();
const NOWHERE: Pick<Known, "ofEvent"> = { ofEvent: new Map() };

/** Deliveries of the partner to the whole fleet. They are stored for the sites that they concern. */
export class FleetDeliveries {
  readonly #parts: DeliveriesParts;
  /** Keys of sites do not change. */
  readonly #keys = new Map<string, Buffer>();

  constructor(parts: DeliveriesParts) {
    this.#parts = parts;
  }

  /** Resolves after the commit. */
  async put(delivery: Delivery): Promise<IngestAnswer> {
    const { notices } = delivery;
    const { log } = this.#parts;
    try {
      const dropped = await this.#store(delivery);
      const rejected = notices.filter(({ kind }) => kind === "rejected").length;
      const unread = dropped.filter((notice) => notice.kind === "rejected");
      const foreign = dropped.filter(({ kind }) => kind !== "rejected");
      if (unread.length > 0)
        log.warn(unreadable(unread), "a delivery has entries that cannot be read and that no site records");
      if (foreign.length > 0)
        log.warn(
          { events: eventsIn(foreign).slice(0, 20), count: foreign.length },
          "a delivery has entries that concern no site of this fleet",
        );
      return { ok: true, ingested: { accepted: notices.length - rejected, repeats: 0, rejected } };
    } catch (error) {
      return { ok: false, reason: faultOf(error).reason };
    }
  }

  /** Fetches these events for the sites that they concern. The list is requested for one that cannot be fetched or stored. */
  async fetch(ids: readonly EventId[], event: EventService["event"]): Promise<void> {
    for (const id of ids) {
      const fetched = await event(id);
      const isStored = fetched.kind === "read" && (await this.put(fetched.delivery)).ok;
      // The webhook was answered already, so the sender does not repeat it.
      if (!isStored) await this.#parts.inbox.wantList().catch(faultOf);
    }
  }

  async #store(delivery: Delivery): Promise<readonly Notice[]> {
    const { inbox, onStored } = this.#parts;
    const { notices } = delivery;
    const ids = eventsIn(notices);
    const [{ ofVehicle, ofEvent }, all, deleted] = await Promise.all([
      inbox.sitesOf(targetsIn(notices), ids),
      notices.some(isForAll) ? inbox.all() : [],
      inbox.deleted(ids),
    ]);
    const { bySite, events, foreign } = routesOf(notices, { ofVehicle, ofEvent, all });
    const isNew = new Set(events.map(({ event, site }) => `${site}\n${event}`));
    const withDeletes = [...bySite].map(([site, own]): readonly [string, readonly Notice[]] => {
      // A delete that arrived before the event may be the newer one of the two.
      const before = own.flatMap((notice) =>
        notice.kind === "event" && isNew.has(`${site}\n${notice.event.id}`)
          ? (deleted.get(notice.event.id) ?? [])
          : [],
      );
      return [site, [...before, ...own]];
    });
    const rows = await this.#rowsOf(delivery, withDeletes);
    const deletes = notices.filter((notice) => notice.kind === "deleted");
    await inbox.put(rows, events, deletes);
    const missed = await this.#missed(deletes, { bySite, events }, deleted);
    if (missed.size > 0) await inbox.put(await this.#rowsOf(delivery, missed), [], []);
    if (rows.length + missed.size > 0) onStored();
    return foreign;
  }

  /**
   * Deletes that still concern a site after the commit. Another process may have stored the event meanwhile, or its delete:
   * neither saw what the other stored. `known`: deletes that the sites got with the events.
   */
  async #missed(
    deletes: readonly Deleted[],
    { bySite, events }: Pick<Routes, "bySite" | "events">,
    known: ReadonlyMap<string, Deleted>,
  ): Promise<ReadonlyMap<string, readonly Notice[]>> {
    const own = new Set<string>(deletes.map(({ id }) => id));
    const ids = new Set(events.map(({ event }) => event).filter((event) => !own.has(event)));
    const late = ids.size === 0 ? NOTHING : await this.#parts.inbox.deleted([...ids]);
    const { ofEvent } = own.size === 0 ? NOWHERE : await this.#parts.inbox.sitesOf([], [...own]);
    const missed = new Map<string, Notice[]>();
    const give = (site: string, notice: Deleted): void => {
      const given = missed.get(site);
      if (given === undefined) missed.set(site, [notice]);
      else given.push(notice);
    };
    for (const { event, site } of events) {
      const notice = late.get(event);
      if (notice !== undefined && notice.revision !== known.get(event)?.revision) give(site, notice);
    }
    for (const notice of deletes)
      for (const site of ofEvent.get(notice.id) ?? [])
        if (bySite.get(site)?.includes(notice) !== true) give(site, notice);
    return missed;
  }

  /** Rows of a delivery with the notices of each site. */
  async #rowsOf(
    delivery: Delivery,
    bySite: Iterable<readonly [string, readonly Notice[]]>,
  ): Promise<Parameters<FleetInbox["put"]>[0]> {
    const all = [...bySite];
    const keys = await this.#keysOf(all.map(([site]) => site));
    return all.flatMap(([site, notices]) => {
      const siteKey = keys.get(site);
      return siteKey === undefined ? [] : [{ site, siteKey, delivery: { ...delivery, notices } }];
    });
  }

  async #keysOf(sites: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
    const missing = sites.filter((site) => !this.#keys.has(site));
    const read = missing.length === 0 ? [] : [...(await this.#parts.sites.read(missing))];
    for (const [site, stored] of read) {
      if (typeof stored === "object") this.#keys.set(site, stored.siteKey);
      else this.#parts.log.error({ site, reason: stored }, "a delivery is not stored for a site");
    }
    // The sender tries again, perhaps at a process with the right key of the operator.
    const isKept = read.length === 0 || sites.some((site) => this.#keys.has(site));
    if (!isKept) throw new Error("the keys of the sites of this delivery cannot be read");
    return this.#keys;
  }
}

interface Reachable extends Pick<SiteAccess, "ingest"> {
  readonly siteKey: Buffer;
  readonly lease: Pick<Lease, "epoch" | "state">;
  readonly failed: Pick<PromiseWithResolvers<unknown>, "resolve">;
}

/** Deliveries of one page. */
const MOST_READ = 1_000;
/** Bytes of the bodies of one read, unless a single one is larger. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Deliveries that sites ingest at the same time. More would make the answer to the next webhook wait. */
const MOST_INGESTED = 16;
/** Time after which a delivery does not count any more, ms: a site that hangs delays no other. */
const COUNTS_FOR_MS = 2_000;

/**
 * Hands stored deliveries to the sites of this process. Each is deleted by the commit of its decisions. After a failure a
 * site gets its deliveries one at a time: they may share a commit. One that always fails goes to the quarantine then.
 */
export class DeliveryReader {
  readonly #inbox: FleetInbox;
  readonly #led: ReadonlyMap<string, Reachable>;
  readonly #log: Logger;
  /** Deliveries that a site ingests now, with the site. */
  readonly #given = new Map<number, string>();
  readonly #failures: DeliveryFailures;
  readonly #places = new SharedPlaces(MOST_INGESTED, COUNTS_FOR_MS);
  #running: Promise<void> | null = null;
  #isWanted = false;

  constructor(inbox: FleetInbox, led: ReadonlyMap<string, Reachable>, log: Logger, monotonic: () => number) {
    this.#inbox = inbox;
    this.#led = led;
    this.#log = log;
    this.#failures = new DeliveryFailures(monotonic);
  }

  /** Reads until nothing waits. A call while it reads makes it read once more. */
  read(): Promise<void> {
    this.#isWanted = true;
    this.#running ??= this.#readAll().finally(() => (this.#running = null));
    return this.#running;
  }

  /** As `read`, for a caller that does not wait. The database may be away: the repeated read logs that, and reads again. */
  readSoon(): void {
    this.read().catch(faultOf);
  }

  async #readAll(): Promise<void> {
    while (this.#isWanted) {
      this.#isWanted = false;
      // Sites that start, stop, or are in their back-off. Their deliveries must not fill each page.
      const unready = new Set<string>();
      const seen = new Set(this.#given.keys());
      let after = 0;
      for (let isFull = true; isFull;) {
        const but = [...unready];
        const page = await this.#inbox.waiting([...this.#given.keys()], MOST_READ, { after, but });
        for (const { id, site } of page) {
          seen.add(id);
          if ((this.#led.get(site)?.ingest ?? null) === null) unready.add(site);
        }
        const ready = page.filter(({ site }) => !unready.has(site));
        const due = this.#failures.due(ready, new Set(this.#given.values()));
        for (const batch of inBatches(due, MOST_BYTES, ({ bytes }) => bytes))
          for (const row of await this.#inbox.bodies(batch.map(({ id }) => id))) await this.#handOn(row);
        after = page.at(-1)?.id ?? after;
        isFull = page.length === MOST_READ;
      }
      for (const id of this.#failures.ids) if (!seen.has(id)) this.#failures.forget(id);
    }
  }

  /** Hands a delivery to its site once there is a place. It waits for a site that stopped meanwhile. */
  async #handOn({ id, site: name, body, mac }: SiteDelivery): Promise<void> {
    const leave = await this.#places.enter(true);
    const site = this.#led.get(name);
    const isWhole = site === undefined || deliveryMac(site.siteKey, name, body) === mac;
    if (site === undefined || site.ingest === null || !isWhole) {
      leave();
      if (isWhole) return;
      this.#log.error({ site: name }, "a stored delivery was edited by another program: it is dropped");
      await this.#inbox.drop(id);
      return;
    }
    void this.#give(name, site, site.ingest, { ...JSON.parse(body), stored: id })
      .catch((error) => site.failed.resolve(error))
      .finally(leave);
    // Sites together must not hold up the answer to the next webhook.
    await nextTurn();
  }

  async #give(
    name: string,
    site: Reachable,
    ingest: NonNullable<SiteAccess["ingest"]>,
    delivery: Delivery & { readonly stored: number },
  ): Promise<void> {
    const { stored: id } = delivery;
    let isNextDue = false;
    this.#given.set(id, name);
    try {
      const answer = await ingest(delivery);
      if (answer.ok) isNextDue = this.#failures.stored(id, name);
      else await this.#failed(name, site, delivery, answer.reason);
    } finally {
      this.#given.delete(id);
    }
    // A burst would wait for the next read of the loop with each of its deliveries.
    if (isNextDue) this.readSoon();
  }

  /** Not stored: a later read gives it again. */
  async #failed(
    name: string,
    { lease, siteKey }: Reachable,
    delivery: Delivery & { readonly stored: number },
    reason: string,
  ): Promise<void> {
    const { stored: id } = delivery;
    // Without the lease the next leader gets it.
    if (lease.state !== "leading" || !this.#failures.failed(id, name)) return;
    const from = { site: name, siteKey, epoch: lease.epoch };
    try {
      if (!(await this.#inbox.setAside(from, delivery, reason))) return;
    } catch (error) {
      // Tried again after the next failure.
      return void faultOf(error);
    }
    this.#failures.forget(id);
    this.#log.error(
      { site: name, delivery: id, reason },
      "a delivery cannot be ingested: it is in the quarantine",
    );
  }
}
