import { type Delivery, type EventHint, eventOf, type IngestAnswer } from "../../domain/delivery.ts";
import { MOST_WAITING } from "../../domain/leadership.ts";
import { eventId } from "../../domain/units.ts";
import { authenticate } from "../chain.ts";
import { CHANNEL } from "./announcements.ts";
import { faultOf, type SiteDatabase } from "./database.ts";

/** Characters of a delivery that the quarantine keeps. */
const MOST_RAW = 4_096;

/** Deliveries that a stand-in received. The leader ingests them, and deletes each with the commit of its decisions. */
export class Inbox {
  readonly #from: SiteDatabase;

  constructor(from: SiteDatabase) {
    this.#from = from;
  }

  /** Stores a delivery for the leader. Resolves after the commit. */
  async put(delivery: Delivery): Promise<IngestAnswer> {
    const { database, site, siteKey } = this.#from;
    const body = JSON.stringify(delivery);
    try {
      await database.query(PUT, [site, body, deliveryMac(siteKey, site, body)]);
    } catch (error) {
      return { ok: false, reason: faultOf(error).reason };
    }
    const rejected = delivery.notices.filter(({ kind }) => kind === "rejected").length;
    return { ok: true, ingested: { accepted: delivery.notices.length - rejected, repeats: 0, rejected } };
  }

  /**
   * Announces a hint to the leader, which makes the request. It is not stored: the next poll makes up for a lost one.
   * Throws errors of the database.
   */
  async hint(wanted: EventHint): Promise<void> {
    const { database, site } = this.#from;
    const parts = wanted === "list" ? [wanted] : chunksOf(wanted, MOST_IDS);
    const payloads = parts.map((hint) => JSON.stringify({ site, hint }));
    await database.query(ANNOUNCE, [payloads]);
  }

  /** Moves a delivery to the quarantine. False: it waits no more, or the epoch is over. Throws errors of the database. */
  async setAside(delivery: Delivery, reason: string, epoch: number): Promise<boolean> {
    const { database, site } = this.#from;
    const { at, source, stored = 0, notices } = delivery;
    const [notice] = notices;
    const event = notice === undefined ? null : eventOf(notice);
    const raw = JSON.stringify(delivery).slice(0, MOST_RAW);
    const body = JSON.stringify({ at, source, event, path: "", reason, raw });
    return (await database.query(SET_ASIDE, [site, epoch, stored, body])).length > 0;
  }

  /**
   * The oldest stored deliveries behind the one of this number. One that another program changed is deleted: its sender can
   * be asked again.
   */
  async waiting(after: number): Promise<readonly Delivery[]> {
    const { database, site, siteKey } = this.#from;
    const rows = await database.query(
      "SELECT id, body, mac FROM delivery WHERE site = $1 AND id > $3 ORDER BY id LIMIT $2",
      [site, MOST_WAITING, after],
    );
    const changed = rows.filter((row) => row["mac"] !== deliveryMac(siteKey, site, String(row["body"])));
    if (changed.length > 0)
      await database.query("DELETE FROM delivery WHERE site = $1 AND id = ANY ($2::bigint[])", [
        site,
        changed.map((row) => row["id"]),
      ]);
    return rows
      .filter((row) => !changed.includes(row))
      .map((row): Delivery => ({ ...JSON.parse(String(row["body"])), stored: Number(row["id"]) }));
  }
}

/** The channel belongs to the database, so the schema is a part of its name. */
const PUT = `WITH put AS (INSERT INTO delivery (site, body, mac) VALUES ($1, $2, $3) RETURNING site)
  SELECT pg_notify('${CHANNEL}' || current_schema(), site) FROM put`;

const ANNOUNCE = `SELECT pg_notify('${CHANNEL}' || current_schema(), payload) FROM unnest($1::text[]) AS payload`;

/** Event ids of one announcement. Its payload has less than 8,000 bytes, and an id at most 256 characters. */
const MOST_IDS = 5;

const chunksOf = <T>(all: readonly T[], size: number): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.slice(index * size, (index + 1) * size),
  );

/** The hint in the payload of an announcement. Null: none for this site. Other programs may announce anything. */
export function hintIn(payload: string, site: string): EventHint | null {
  if (!payload.startsWith("{")) return null;
  try {
    const read: unknown = JSON.parse(payload);
    if (typeof read !== "object" || read === null || Reflect.get(read, "site") !== site) return null;
    const hint: unknown = Reflect.get(read, "hint");
    if (hint === "list") return hint;
    return Array.isArray(hint) && hint.every((id) => typeof id === "string") ? hint.map(eventId) : null;
  } catch {
    return null;
  }
}

const SET_ASIDE = `WITH gone AS (
    DELETE FROM delivery USING site WHERE site.id = $1 AND site.epoch = $2 AND delivery.site = $1 AND delivery.id = $3
    RETURNING delivery.site
  ) INSERT INTO quarantine (site, body) SELECT site, $4 FROM gone RETURNING site`;

export const deliveryMac = (siteKey: Buffer, site: string, body: string): string =>
  authenticate(siteKey, "stored delivery", site, body);
