import type { Delivery, IngestAnswer } from "../../domain/delivery.ts";
import { authenticate } from "../chain.ts";
import { CHANNEL } from "./announcements.ts";
import { faultOf } from "./database.ts";
import type { SiteDatabase } from "./siteDatabase.ts";

/** Characters of a delivery that the quarantine keeps. */
const MOST_RAW = 4_096;

/** Deliveries of one read. */
const PAGE = 100;

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

  /** Moves a delivery to the quarantine. Throws errors of the database. */
  async setAside(delivery: Delivery, reason: string, epoch: number): Promise<void> {
    const { database, site } = this.#from;
    const { at, source, stored = 0, notices } = delivery;
    const [notice] = notices;
    const event = notice === undefined ? null : notice.kind === "event" ? notice.event.id : notice.id;
    const raw = JSON.stringify(delivery).slice(0, MOST_RAW);
    const body = JSON.stringify({ at, source, event, path: "", reason, raw });
    await database.query(SET_ASIDE, [site, epoch, stored, body]);
  }

  /** The oldest stored deliveries. One that another program changed is deleted: its sender can be asked again. */
  async waiting(): Promise<readonly Delivery[]> {
    const { database, site, siteKey } = this.#from;
    const rows = await database.query(
      "SELECT id, body, mac FROM delivery WHERE site = $1 ORDER BY id LIMIT $2",
      [site, PAGE],
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

const SET_ASIDE = `WITH gone AS (
    DELETE FROM delivery USING site WHERE site.id = $1 AND site.epoch = $2 AND delivery.site = $1 AND delivery.id = $3
    RETURNING delivery.site
  ) INSERT INTO quarantine (site, body) SELECT site, $4 FROM gone`;

export const deliveryMac = (siteKey: Buffer, site: string, body: string): string =>
  authenticate(siteKey, "stored delivery", site, body);
