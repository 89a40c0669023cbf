import type { Database } from "./database.ts";

/** The part of the database that belongs to one site, with the key for its checks. */
export interface SiteDatabase {
  readonly database: Database;
  readonly site: string;
  readonly siteKey: Buffer;
}
