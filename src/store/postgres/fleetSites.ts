import { ChangedState } from "./bodies.ts";
import type { Database, Row } from "./database.ts";
import { isFree } from "./lease.ts";
import {
  decryptedKeys,
  encryptedKeys,
  newKeys,
  type OperatorKeys,
  printsOf,
  type SiteKeys,
} from "./siteKeys.ts";
import { readStates } from "./starts.ts";
import type { StoredState } from "../../domain/changes.ts";
import type { Instant } from "../../domain/units.ts";
import { inParallel } from "../../platform/cooperative.ts";
import { authenticate, GENESIS, sealed } from "../chain.ts";

/** Sites whose keys are encrypted again at the same time. */
const AT_ONCE = 8;

/**
 * A site to store. `file`: the site file as JSON. `commits`: as `commitsOf`, when the state was read that allows the file to
 * leave out chargers. Absent: it leaves out none.
 */
export interface SitePut {
  readonly site: string;
  readonly file: string;
  readonly vehicles: readonly string[];
  readonly commits?: number;
}

/** The reason of a put that may be tried again: the state has to be read anew. */
export const STORED_MEANWHILE =
  "the leader of a site that loses chargers stores something all the time: try again, or put fewer files at once";

/** A vehicle that two sites have. */
export interface VehicleTaken {
  readonly vehicle: string;
  readonly site: string;
  /** The site that has it already. */
  readonly other: string;
}

/** A site with its keys. */
export interface StoredSite extends SiteKeys {
  readonly site: string;
  readonly revision: number;
  /** Null: another program edited it. */
  readonly file: string | null;
}

/** Sites of a fleet in the database. Methods throw errors of the database. */
export class FleetSites {
  readonly #database: Database;
  readonly #operatorKeys: OperatorKeys;
  readonly #random: (bytes: number) => Buffer;

  constructor(database: Database, operatorKeys: OperatorKeys, random: (bytes: number) => Buffer) {
    this.#database = database;
    this.#operatorKeys = operatorKeys;
    this.#random = random;
  }

  /** Stores all of these sites or none. Returns the vehicles that another site has, or a reason; null: stored. */
  async put(puts: readonly SitePut[]): Promise<readonly VehicleTaken[] | string | null> {
    const sites = puts.map(({ site }) => site);
    const owned = puts.flatMap(({ site, vehicles }) => vehicles.map((vehicle) => ({ vehicle, site })));
    try {
      return await this.#database.transaction(async (query) => {
        await query(LOCK);
        await query("DELETE FROM fleet_vehicle WHERE site = ANY ($1::text[])", [sites]);
        // Deliveries that were stored while the site was removed may be of any age.
        await query(DELETE_LATE, [sites]);
        const taken = await query(
          `SELECT x.vehicle, x.site, v.site AS other FROM json_to_recordset($1::json) AS x (vehicle text, site text)
           JOIN fleet_vehicle v ON v.vehicle = x.vehicle ORDER BY x.vehicle LIMIT 100`,
          [JSON.stringify(owned)],
        );
        if (taken.length > 0) throw new Refused(taken.map(takenIn));
        await query(
          `INSERT INTO fleet_vehicle SELECT x.vehicle, x.site FROM json_to_recordset($1::json) AS x (vehicle text, site text)`,
          [JSON.stringify(owned)],
        );
        // A lock would hold up the renewal of all leases until the end of this transaction.
        const known = await query("SELECT id, keys FROM site WHERE id = ANY ($1::text[])", [sites]);
        const keys = new Map(
          known.map((row) => [String(row["id"]), row["keys"] === null ? null : String(row["keys"])]),
        );
        const rows = puts.map(({ site, file }) => this.#rowOf(site, file, keys.get(site)));
        await query(
          `INSERT INTO site (id, key_print, proof_print, head_seq, head_hash, sealed, epoch, commit_no, readings, thinned_minute, keys)
           SELECT x.id, x.key_print, x.proof_print, 0, $2, x.sealed, 0, 0, 0, 0, x.keys
           FROM json_to_recordset($1::json) AS x (id text, key_print text, proof_print text, sealed text, keys text)
           ON CONFLICT DO NOTHING`,
          [JSON.stringify(rows), GENESIS.hash],
        );
        await query(
          `INSERT INTO fleet_site (id, revision, file, mac, put_at)
           SELECT x.id, nextval('fleet_revision'), x.file, x.mac, clock_timestamp()
           FROM json_to_recordset($1::json) AS x (id text, file text, mac text)
           ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, file = excluded.file, mac = excluded.mac,
             put_at = excluded.put_at
           WHERE (fleet_site.file, fleet_site.mac) <> (excluded.file, excluded.mac)`,
          [JSON.stringify(rows)],
        );
        // Last, so that the renewal of all leases waits for no other statement of this transaction.
        const fenced = puts.filter(({ commits }) => commits !== undefined);
        if (fenced.length > 0 && (await query(FENCE, [JSON.stringify(fenced)])).length < fenced.length)
          throw new Refused(STORED_MEANWHILE);
        return null;
      });
    } catch (error) {
      if (error instanceof Refused) return error.why;
      throw error;
    }
  }

  /** `stored`: keys of a site that is known. Undefined: it is new. Null: they are files of a single gateway. */
  #rowOf(site: string, file: string, stored: string | null | undefined): Readonly<Record<string, string>> {
    if (stored === null)
      throw new Refused(
        `the keys of the site ${site} are files of a gateway: start setpointd run with state.postgres.siteKeys there once`,
      );
    const operatorKeys = this.#operatorKeys();
    const [newest = Buffer.alloc(0)] = operatorKeys;
    const keys = stored === undefined ? newKeys(this.#random) : decryptedKeys(operatorKeys, site, stored);
    if (typeof keys === "string") throw new Refused(keys);
    const [key_print, proof_print] = printsOf(keys);
    return {
      id: site,
      file,
      mac: macOf(keys, site, file),
      keys: encryptedKeys(newest, site, keys, this.#random),
      key_print,
      proof_print,
      sealed: sealed(keys.siteKey, GENESIS, 0),
    };
  }

  /**
   * Encrypts the keys of all sites with the newest key of the operator, where an older one had. Returns the number of those
   * sites. A text: the reason why the keys of no site can be read.
   */
  async encryptAgain(): Promise<number | string> {
    const operatorKeys = this.#operatorKeys();
    const [newest = Buffer.alloc(0)] = operatorKeys;
    const rows = await this.#database.query("SELECT id, keys FROM site WHERE keys IS NOT NULL");
    const read = rows.map((row) => {
      const [site, before] = [String(row["id"]), String(row["keys"])];
      return { site, before, keys: decryptedKeys(operatorKeys, site, before) };
    });
    const usable = read.flatMap(({ keys, ...each }) => (typeof keys === "string" ? [] : { ...each, keys }));
    const [first] = read;
    if (usable.length === 0 && typeof first?.keys === "string") return first.keys;
    const again = usable
      .filter(({ keys }) => keys.isOld)
      .map(({ site, before, keys }) => ({
        site,
        before,
        keys: encryptedKeys(newest, site, keys, this.#random),
      }));
    // A statement for many sites would hold up the renewal of their leases, and could wait for it in a circle.
    await inParallel(AT_ONCE, again, async ({ site, before, keys }) => {
      await this.#database.query(ENCRYPT_AGAIN, [site, before, keys]);
    });
    return again.length;
  }

  /**
   * The record of the site and its keys stay, and its deliveries do not. Its leader stores nothing any more, so it sends
   * nothing either. `commits`: as `commitsOf`, when the state was read that allows it. False: there is no such site, or its
   * leader has stored something since then.
   */
  async remove(site: string, commits: number | null = null): Promise<boolean> {
    return this.#database.transaction(async (query) => {
      await query(LOCK);
      return (await query(REMOVE, [site, commits])).length > 0;
    });
  }

  /** Number of the last commit. Null: there is no such site. */
  async commitsOf(site: string): Promise<number | null> {
    const [row] = await this.#database.query(COMMITS, [site]);
    return row === undefined ? null : Number(row["commit_no"]);
  }

  /** These sites as stored, those that were removed left out. A text: the reason why its keys cannot be read. */
  async read(sites: readonly string[]): Promise<ReadonlyMap<string, StoredSite | string>> {
    const rows = await this.#database.query(READ, [sites]);
    return new Map(rows.map((row) => [String(row["id"]), this.#storedIn(row)]));
  }

  #storedIn(row: Row): StoredSite | string {
    const [site, file] = [String(row["id"]), String(row["file"])];
    const keys = decryptedKeys(this.#operatorKeys(), site, String(row["keys"]));
    if (typeof keys === "string") return keys;
    const { siteKey, proofKey } = keys;
    const isEdited = row["mac"] !== macOf(keys, site, file);
    return { site, file: isEdited ? null : file, revision: Number(row["revision"]), siteKey, proofKey };
  }

  /** The stored state of a site that perhaps another process leads. Null: the site is new. A text: the reason why it cannot be read. */
  async stateOf(site: string, now: Instant): Promise<StoredState | string | null> {
    const stored = (await this.read([site])).get(site);
    if (stored === undefined) return null;
    if (typeof stored === "string") return stored;
    const state = (await readStates(this.#database, [stored], now)).get(site);
    return state instanceof ChangedState ? state.message : (state?.storedState ?? null);
  }
}

/** The reason why a stored site file cannot be used. */
export const editedFile = (site: string): string =>
  `the stored file of the site ${site} was edited by another program: put it again`;

/** Ends the transaction of a put. */
class Refused extends Error {
  readonly why: readonly VehicleTaken[] | string;

  constructor(why: readonly VehicleTaken[] | string) {
    super("refused");
    this.why = why;
  }
}

const takenIn = (row: Row): VehicleTaken => ({
  vehicle: String(row["vehicle"]),
  site: String(row["site"]),
  other: String(row["other"]),
});

const macOf = ({ siteKey }: SiteKeys, site: string, file: string): string =>
  authenticate(siteKey, "site file", site, file);

/**
 * Changes of sites wait for each other: two at a time could give one vehicle to two sites. And a process that has seen the
 * higher of two revisions would never notice the lower one, were that committed after it.
 */
const LOCK = "LOCK TABLE fleet_vehicle IN SHARE ROW EXCLUSIVE MODE";

const COMMITS = "SELECT commit_no FROM site JOIN fleet_site USING (id) WHERE id = $1 AND file <> ''";

/**
 * One statement: the renewal of all leases waits for the row of the site. A commit locks that row before its deliveries as
 * well. The site would ingest those after its next put, however old. That put deletes one that is being stored now.
 */
const REMOVE = `WITH fenced AS (
    UPDATE site SET epoch = greatest(epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint)
    WHERE id = $1 AND commit_no = coalesce($2, commit_no)
      AND EXISTS (SELECT 1 FROM fleet_site f WHERE f.id = $1 AND f.file <> '') RETURNING id
  ), vehicles AS (
    DELETE FROM fleet_vehicle USING fenced WHERE fleet_vehicle.site = fenced.id
  ), deliveries AS (
    DELETE FROM delivery USING fenced WHERE delivery.site = fenced.id
  ) UPDATE fleet_site SET revision = nextval('fleet_revision'), file = '' FROM fenced WHERE fleet_site.id = fenced.id
  RETURNING fleet_site.id`;

/**
 * Ends the terms of the leaders, and frees the sites for the next ones. An event that a leader stores after this would
 * limit a charger that no leader knows any more. A row that is locked is that of a commit or a renewal: a put that waited for
 * one of several could wait in a circle.
 */
const FENCE = `WITH same AS (
    SELECT s.id FROM json_to_recordset($1::json) AS x (site text, commits bigint)
      JOIN site s ON s.id = x.site AND s.commit_no = x.commits FOR UPDATE OF s SKIP LOCKED
  ) UPDATE site SET epoch = greatest(epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
    leader = NULL, lease_until = clock_timestamp()
  FROM same WHERE site.id = same.id RETURNING site.id`;

/** Keys that another process has encrypted again meanwhile stay. */
const ENCRYPT_AGAIN = "UPDATE site SET keys = $3 WHERE id = $1 AND keys = $2";

/** A process that leads such a site is no part of the fleet: its stand-ins stored the deliveries. */
const DELETE_LATE = `DELETE FROM delivery USING fleet_site f, site s
  WHERE delivery.site = ANY ($1::text[]) AND f.id = delivery.site AND f.file = '' AND s.id = f.id
    AND ${isFree("s")}`;

const READ = `SELECT f.id, f.revision, f.file, f.mac, s.keys FROM fleet_site f JOIN site s ON s.id = f.id
  WHERE f.id = ANY ($1::text[]) AND f.file <> ''`;
