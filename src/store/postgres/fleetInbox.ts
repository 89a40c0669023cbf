import { hash } from "node:crypto";

import type { Delivery, Notice } from "../../domain/delivery.ts";
import { type Instant, instant } from "../../domain/units.ts";
import { authenticate } from "../chain.ts";
import { type Database, faultOf, type Row } from "./database.ts";
import { deliveryMac, Inbox } from "./inbox.ts";
import { LONGEST_AHEAD } from "./lease.ts";
import type { OperatorKeys } from "./siteKeys.ts";

type Deleted = Extract<Notice, { readonly kind: "deleted" }>;

/** The partner's last answer, as the process that polls stored it. */
export interface StoredList {
  readonly number: number;
  readonly answer: string;
  readonly bodyNumber: number;
  readonly body: string | null;
}

/** A delivery that waits for its site. */
export interface WaitingDelivery {
  readonly id: number;
  readonly site: string;
  /** Size of the body. */
  readonly bytes: number;
}

/** A delivery for a site. */
export interface SiteDelivery {
  readonly id: number;
  readonly site: string;
  readonly body: string;
  readonly mac: string;
}

/**
 * Shortest time that a process polls without a renewal, ms. A process renews once a second at best: with a shorter claim
 * two processes would poll by turns.
 */
const SHORTEST_CLAIM_MS = 5_000;

/** Messages of the partner in the database: lists for all processes, deliveries for sites. Methods throw errors of the database. */
export class FleetInbox {
  readonly #database: Database;
  readonly #process: string;
  /** Time that this process polls without a renewal, ms. */
  readonly #length: number;
  readonly #operatorKeys: OperatorKeys;

  constructor(
    database: Database,
    { process, length }: { readonly process: string; readonly length: number },
    operatorKeys: OperatorKeys,
  ) {
    this.#database = database;
    this.#process = process;
    this.#length = Math.max(length, SHORTEST_CLAIM_MS);
    this.#operatorKeys = operatorKeys;
  }

  /** The time of the database, where this process polls the partner for a while from then on. Null: another one does. */
  async polls(): Promise<Instant | null> {
    const rows = await this.#database.query(
      `UPDATE fleet_poller SET process = $1, until = clock_timestamp() + $2 * interval '1 ms'
       WHERE process = $1 OR process IS NULL
         OR until NOT BETWEEN clock_timestamp() AND clock_timestamp() + ${LONGEST_AHEAD} RETURNING ${CLOCK} AS now`,
      [this.#process, this.#length],
    );
    const [row] = rows;
    return row === undefined ? null : instant(Math.floor(Number(row["now"])));
  }

  /** Runs a step of the process that polls, and renews its claim meanwhile. Without the claim it could not store the answer. */
  async whilePolling<T>(step: () => Promise<T>): Promise<T> {
    let renewing: Promise<unknown> = Promise.resolve();
    const timer = setInterval(() => {
      renewing = this.polls().catch(faultOf);
    }, this.#length / 3);
    try {
      return await step();
    } finally {
      clearInterval(timer);
      // A renewal after the end of this process would claim the polling again.
      await renewing;
    }
  }

  /** Stores an answer of the partner for all processes. `body` null, or the stored list again: the last one stays. */
  async store(answer: string, body: string | null): Promise<void> {
    if (body === null) {
      await this.#database.query(STORE_ANSWER, [this.#process, answer]);
      return;
    }
    // Another process may have stored another list since ours, so the database compares.
    const mac = listMac(this.#operatorKeys()[0], body);
    const print = hash("sha256", body, "buffer");
    const same = await this.#database.query(STORE_UNCHANGED, [this.#process, answer, mac, print]);
    if (same.length === 0) await this.#database.query(STORE_LIST, [this.#process, answer, body, mac]);
  }

  /** The partner's last answer. `body` null: still that of `bodyNumber`. Null: there is none, or it was changed. */
  async list(bodyNumber: number): Promise<StoredList | null> {
    const [row] = await this.#database.query(
      `SELECT number, answer, body_number, mac, CASE WHEN body_number NOT IN (0, $1) THEN body END AS body
       FROM fleet_poller WHERE number > 0`,
      [bodyNumber],
    );
    if (row === undefined) return null;
    const body = row["body"] === null ? null : String(row["body"]);
    if (body !== null && !this.#operatorKeys().some((key) => listMac(key, body) === row["mac"])) return null;
    return {
      number: Number(row["number"]),
      answer: String(row["answer"]),
      bodyNumber: Number(row["body_number"]),
      body,
    };
  }

  /** Clock of the database. */
  async time(): Promise<Instant> {
    const [row] = await this.#database.query(`SELECT ${CLOCK} AS now`);
    return instant(Number(row?.["now"]));
  }

  /** Requests a list from the process that polls. */
  async wantList(): Promise<void> {
    await this.#database.query("UPDATE fleet_poller SET wanted = wanted + 1");
  }

  /**
   * Sites of these vehicles, and sites that have these events. An event from a list, or from before the fleet, is only among
   * the stored ones.
   */
  async sitesOf(
    vehicles: readonly string[],
    events: readonly string[],
  ): Promise<{
    readonly ofVehicle: ReadonlyMap<string, string>;
    readonly ofEvent: ReadonlyMap<string, readonly string[]>;
  }> {
    const [owned, had] = await Promise.all([
      this.#database.query("SELECT vehicle, site FROM fleet_vehicle WHERE vehicle = ANY ($1::text[])", [
        vehicles,
      ]),
      this.#database.query(SITES_OF_EVENTS, [events]),
    ]);
    return {
      ofVehicle: new Map(owned.map((row) => [String(row["vehicle"]), String(row["site"])])),
      ofEvent: new Map(
        [...Map.groupBy(had, (row) => String(row["event"]))].map(([event, rows]) => [
          event,
          rows.map((row) => String(row["site"])),
        ]),
      ),
    };
  }

  /** Deletes of these events. Of several of one event, the one with the highest revision. */
  async deleted(events: readonly string[]): Promise<ReadonlyMap<string, Deleted>> {
    return deletesIn(
      await this.#database.query("SELECT event, notice FROM fleet_deleted WHERE event = ANY ($1::text[])", [
        events,
      ]),
    );
  }

  /** As `deleted`, those that arrived since this time of the database. */
  async deletedSince(time: Instant): Promise<ReadonlyMap<string, Deleted>> {
    return deletesIn(
      await this.#database.query(
        "SELECT event, notice FROM fleet_deleted WHERE at >= to_timestamp($1::float8 / 1000)",
        [time],
      ),
    );
  }

  /** All sites. */
  async all(): Promise<readonly string[]> {
    return (await this.#database.query("SELECT id FROM fleet_site WHERE file <> ''")).map((row) =>
      String(row["id"]),
    );
  }

  /** Stores a delivery for each of its sites, all or none. Resolves after the commit. */
  async put(
    deliveries: readonly { readonly site: string; readonly delivery: Delivery; readonly siteKey: Buffer }[],
    events: readonly { readonly event: string; readonly site: string }[],
    deleted: readonly Deleted[],
  ): Promise<void> {
    const rows = deliveries.map(({ site, delivery, siteKey }) => {
      const body = JSON.stringify(delivery);
      return { site, body, mac: deliveryMac(siteKey, site, body) };
    });
    await this.#database.query(PUT, [
      JSON.stringify(rows),
      JSON.stringify(events),
      JSON.stringify(
        deleted.map((notice) => ({
          event: notice.id,
          notice: JSON.stringify(notice),
          revision: notice.revision,
        })),
      ),
    ]);
  }

  /**
   * Deliveries of the sites that this process leads, oldest first, except those in `known` and those of the sites `but`.
   * `after`: the number of the last one of the page before.
   */
  async waiting(
    known: readonly number[],
    most: number,
    { after = 0, but = [] }: { readonly after?: number; readonly but?: readonly string[] } = {},
  ): Promise<readonly WaitingDelivery[]> {
    const rows = await this.#database.query(WAITING, [this.#process, known, most, after, but]);
    return rows.map((row) => ({
      id: Number(row["id"]),
      site: String(row["site"]),
      bytes: Number(row["bytes"]),
    }));
  }

  /** These deliveries, oldest first. */
  async bodies(ids: readonly number[]): Promise<readonly SiteDelivery[]> {
    const rows = await this.#database.query(BODIES, [ids]);
    return rows.map((row) => ({
      id: Number(row["id"]),
      site: String(row["site"]),
      body: String(row["body"]),
      mac: String(row["mac"]),
    }));
  }

  /** Moves a delivery to the quarantine of its site. False: it waits no more, or its leader has another epoch. */
  async setAside(
    { site, siteKey, epoch }: { readonly site: string; readonly siteKey: Buffer; readonly epoch: number },
    delivery: Delivery,
    reason: string,
  ): Promise<boolean> {
    return new Inbox({ database: this.#database, site, siteKey }).setAside(delivery, reason, epoch);
  }

  /** Deletes a delivery that another program changed. */
  async drop(id: number): Promise<void> {
    await this.#database.query("DELETE FROM delivery WHERE id = $1", [id]);
  }
}

const deletesIn = (rows: readonly Row[]): ReadonlyMap<string, Deleted> =>
  new Map(rows.map((row) => [String(row["event"]), JSON.parse(String(row["notice"])) as Deleted]));

const CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::float8";

const listMac = (operatorKey: Buffer | undefined, body: string): string =>
  authenticate(operatorKey ?? Buffer.alloc(0), "stored list", body);

const STORE_ANSWER = "UPDATE fleet_poller SET number = number + 1, answer = $2 WHERE process = $1";

const STORE_UNCHANGED = `UPDATE fleet_poller SET number = number + 1, answer = $2
  WHERE process = $1 AND mac = $3 AND sha256(convert_to(body, 'UTF8')) = $4 RETURNING one`;

const STORE_LIST = `UPDATE fleet_poller SET number = number + 1, answer = $2, body_number = number + 1, body = $3, mac = $4
  WHERE process = $1`;

/** A site that was removed has no events, although its rows stay. */
const SITES_OF_EVENTS = `SELECT had.event, had.site FROM (
    SELECT event, site FROM fleet_event WHERE event = ANY ($1::text[])
    UNION SELECT id, site FROM body WHERE kind = 'event' AND id = ANY ($1::text[])
  ) AS had JOIN fleet_site f ON f.id = had.site WHERE f.file <> '' ORDER BY had.site`;

/**
 * Rows of events in one order: two deliveries of the same events would wait for each other. A site that was removed since
 * its deliveries were composed gets none. A join would not keep their order.
 */
const PUT = `WITH had AS (
  INSERT INTO fleet_event SELECT x.event, x.site, clock_timestamp()
  FROM json_to_recordset($2::json) AS x (event text, site text) ORDER BY x.event, x.site
  ON CONFLICT (event, site) DO NOTHING
), deleted AS (
  INSERT INTO fleet_deleted SELECT DISTINCT ON (x.event) x.event, x.notice, clock_timestamp()
  FROM json_to_recordset($3::json) AS x (event text, notice text, revision float8)
  ORDER BY x.event, x.revision DESC NULLS LAST
  ON CONFLICT (event) DO UPDATE SET at = excluded.at, notice = CASE
    WHEN (fleet_deleted.notice::json ->> 'revision')::float8 > coalesce((excluded.notice::json ->> 'revision')::float8, '-Infinity')
    THEN fleet_deleted.notice ELSE excluded.notice END
) INSERT INTO delivery (site, body, mac)
  SELECT x.site, x.body, x.mac FROM json_to_recordset($1::json) AS x (site text, body text, mac text)
  WHERE (SELECT file <> '' FROM fleet_site WHERE id = x.site)`;

/** The size of a body is known without reading it. */
const WAITING = `SELECT d.id, d.site, octet_length(d.body) AS bytes FROM delivery d JOIN site s ON s.id = d.site
  WHERE s.leader = $1 AND s.lease_until > clock_timestamp() AND d.id > $4
    AND NOT d.id = ANY ($2::bigint[]) AND NOT d.site = ANY ($5::text[]) ORDER BY d.id LIMIT $3`;

const BODIES = "SELECT id, site, body, mac FROM delivery WHERE id = ANY ($1::bigint[]) ORDER BY id";
