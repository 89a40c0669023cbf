import { ANOTHER_LEADS, SITE_CHANGED } from "../../domain/leadership.ts";
import type { Database, Row } from "./database.ts";
import { isFree, Lease, type LeaseOptions } from "./lease.ts";

/** A process of a fleet, alive by the clock of the database. */
interface FleetProcess {
  readonly process: string;
  /** Sites that it may lead. */
  readonly most: number;
  readonly led: number;
  /** Sites that it can start now. */
  readonly room: number;
}

/** The fleet at a moment. */
export interface FleetSnapshot {
  readonly sites: number;
  readonly processes: readonly FleetProcess[];
  /** Highest revision of a site file. */
  readonly revision: number;
  /** Number of the last list of the partner, and of requests for another. */
  readonly number: number;
  readonly wanted: number;
}

/** The processes of a fleet in the database, and their leases. Methods throw errors of the database. */
export class FleetWork {
  readonly #database: Database;
  readonly #options: Omit<LeaseOptions, "site">;
  readonly #monotonic: () => number;
  /** The answer to the last renewal was lost. */
  #isUnsure = false;

  constructor(database: Database, options: Omit<LeaseOptions, "site">, monotonic: () => number) {
    this.#database = database;
    this.#options = options;
    this.#monotonic = monotonic;
  }

  /**
   * Counts this process as alive for two thirds of a lease: its sites are shared anew before their leases end. `page`: the
   * address of its page for other machines.
   */
  async alive({
    most,
    room,
    page,
  }: Pick<FleetProcess, "most" | "room"> & { readonly page: string | null }): Promise<void> {
    await this.#database.query(ALIVE, [this.#options.process, most, page, room]);
  }

  async snapshot(): Promise<FleetSnapshot> {
    const { length } = this.#options;
    const rows = await this.#database.query(PROCESSES, [(length * 2) / 3]);
    const [all] = await this.#database.query(ALL);
    return {
      sites: Number(all?.["sites"]),
      revision: Number(all?.["revision"] ?? 0),
      number: Number(all?.["number"]),
      wanted: Number(all?.["wanted"]),
      processes: rows.map((row) => ({
        process: String(row["process"]),
        most: Number(row["most"]),
        led: Number(row["led"]),
        room: Number(row["room"]),
      })),
    };
  }

  /**
   * Takes the leases of up to `most` sites that no process leads, those with chargers under a limit first.
   * `but`: sites of this process. Their leases may have ended while the database was away, and the next renewal may be later
   * than this.
   */
  async take(most: number, but: readonly string[] = []): Promise<readonly Lease[]> {
    const { process, length } = this.#options;
    const renewedAt = this.#monotonic();
    const rows = await this.#database.query(TAKE_SOME, [process, length, most, but]);
    const inOrder = rows.toSorted((a, b) => Number(b["limiting"]) - Number(a["limiting"]));
    return inOrder.map(
      (row) =>
        new Lease(
          this.#database,
          { ...this.#options, site: String(row["id"]) },
          { epoch: Number(row["epoch"]), renewedAt },
          this.#monotonic,
          false,
        ),
    );
  }

  /** Renews these leases by one statement. A lease with an old epoch is lost. */
  async renew(leases: readonly Lease[]): Promise<void> {
    if (leases.length === 0) return;
    // As a single lease: without answers this process cannot lead, and must not keep its sites.
    if (this.#isUnsure) await this.#database.answer();
    this.#isUnsure = true;
    const sentAt = this.#monotonic();
    const rows = await this.#database.query(RENEW_ALL, [
      leases.map(({ site }) => site),
      leases.map(({ epoch }) => epoch),
      this.#options.length,
    ]);
    this.#isUnsure = false;
    const renewed = new Set(rows.map((row) => row["id"]));
    for (const lease of leases) if (renewed.has(lease.site)) lease.renewed(sentAt);
    const ended = leases.filter(({ site }) => !renewed.has(site));
    if (ended.length > 0) await endTerms(this.#database, ended);
  }

  /** Sites whose file changed after `revision`, and those that were removed. */
  async changedSince(
    revision: number,
  ): Promise<readonly { readonly site: string; readonly isRemoved: boolean }[]> {
    const rows = await this.#database.query(CHANGED, [revision]);
    return rows.map((row) => ({ site: String(row["id"]), isRemoved: row["removed"] === true }));
  }

  /** This process ends. */
  async leave(): Promise<void> {
    const { process } = this.#options;
    await this.#database.query("DELETE FROM fleet_process WHERE process = $1", [process]);
    await this.#database.query("UPDATE fleet_poller SET process = NULL WHERE process = $1", [process]);
  }

  /** Forgets old deletes and processes, and which sites had events that they do not have any more. The signal ends it early. */
  async prune(signal?: AbortSignal): Promise<void> {
    await this.#database.query("DELETE FROM fleet_deleted WHERE at < clock_timestamp() - interval '30 days'");
    await this.#database.query("DELETE FROM fleet_process WHERE seen < clock_timestamp() - interval '1 day'");
    // A delivery with an event of a row that is deleted waits for the end of the statement, so each handles few.
    let last: readonly unknown[] | null = ["", ""];
    while (last !== null) {
      if (signal?.aborted === true) return;
      const [row]: readonly Row[] = await this.#database.query(PRUNE_EVENTS, last);
      last = row === undefined ? null : [row["event"], row["site"]];
    }
  }
}

/** Since the last renewal: a put before it did not end the term. */
const PUT_SINCE = `SELECT id FROM fleet_site JOIN unnest($1::text[], $2::float8[]) AS x (site, age) ON id = x.site
  WHERE file = '' OR put_at > clock_timestamp() - x.age * interval '1 ms'`;

/**
 * Ends these leases, whose epoch the database refused: a person changed or removed the site, or another process leads.
 * Returns the last reason. Throws errors of the database.
 */
export async function endTerms(database: Pick<Database, "query">, leases: readonly Lease[]): Promise<string> {
  const ages = leases.map(({ age }) => age);
  const rows = await database.query(PUT_SINCE, [leases.map(({ site }) => site), ages]);
  const changed = new Set(rows.map((row) => row["id"]));
  let reason = ANOTHER_LEADS;
  for (const lease of leases) {
    reason = changed.has(lease.site) ? SITE_CHANGED : ANOTHER_LEADS;
    lease.lose(reason);
  }
  return reason;
}

const CHANGED = "SELECT id, file = '' AS removed FROM fleet_site WHERE revision > $1 ORDER BY revision";

/** Rows that one statement of the pruning reads. A constant of the statement, so that its plan fits. */
const EVENTS_AT_ONCE = 1_000;

/** A delivery that waits may bring the event again. Returns the last row that was read. */
const PRUNE_EVENTS = `WITH page AS (
  SELECT event, site, at FROM fleet_event WHERE (event, site) > ($1, $2) ORDER BY event, site LIMIT ${EVENTS_AT_ONCE}
), gone AS (
  DELETE FROM fleet_event e USING page WHERE e.event = page.event AND e.site = page.site
    AND page.at < clock_timestamp() - interval '1 day'
    AND NOT EXISTS (SELECT 1 FROM body b WHERE b.site = e.site AND b.kind = 'event' AND b.id = e.event)
    AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.site = e.site)
) SELECT event, site FROM page ORDER BY event DESC, site DESC LIMIT 1`;

const ALIVE = `INSERT INTO fleet_process (process, most, seen, page, room) VALUES ($1, $2, clock_timestamp(), $3, $4)
  ON CONFLICT (process) DO UPDATE SET most = excluded.most, seen = excluded.seen, page = excluded.page, room = excluded.room`;

/** A process that was seen later than now ended before the clock of the database was set back. */
const PROCESSES = `SELECT p.process, p.most, p.room,
    (SELECT count(*) FROM site s WHERE s.leader = p.process AND s.lease_until > clock_timestamp()) AS led
  FROM fleet_process p WHERE p.seen BETWEEN clock_timestamp() - $1 * interval '1 ms'
    AND clock_timestamp() + $1 * interval '1 ms' ORDER BY p.process`;

const ALL = `SELECT count(*) FILTER (WHERE file <> '') AS sites, max(revision) AS revision,
  (SELECT number FROM fleet_poller) AS number, (SELECT wanted FROM fleet_poller) AS wanted FROM fleet_site`;

/** A level or a pause is the last command of a charger of the site. */
const isLimiting = (table: string): string => `EXISTS (SELECT 1 FROM body b WHERE b.site = ${table}.id
  AND b.kind = 'command' AND b.body NOT LIKE '%"desired":{"kind":"release"}%')`;

/**
 * `TAKE` of a single lease, for several sites. Those that another process takes at the moment are skipped. Sites with chargers
 * under a limit come first: they wait for their refresh, the others for the next event.
 */
const TAKE_SOME = `UPDATE site SET epoch = greatest(epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
    leader = $1, led_since = clock_timestamp(), lease_until = clock_timestamp() + $2 * interval '1 ms'
  WHERE id IN (
    SELECT s.id FROM site s JOIN fleet_site f ON f.id = s.id
    WHERE f.file <> '' AND ${isFree("s")} AND s.id <> ALL ($4::text[])
    ORDER BY ${isLimiting("s")} DESC, s.id LIMIT $3 FOR UPDATE OF s SKIP LOCKED
  ) AND ${isFree("site")} RETURNING id, epoch, ${isLimiting("site")} AS limiting`;

const RENEW_ALL = `UPDATE site SET lease_until = clock_timestamp() + $3 * interval '1 ms'
  FROM unnest($1::text[], $2::bigint[]) AS x (id, epoch)
  WHERE site.id = x.id AND site.epoch = x.epoch AND site.leader IS NOT NULL RETURNING site.id`;
