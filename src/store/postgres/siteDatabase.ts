import type { Database } from "./database.ts";

/** The part of the database that belongs to one site, with the key for its checks. */
export interface SiteDatabase {
  /** Connections, or a transaction on one of them. */
  readonly database: Pick<Database, "query">;
  readonly site: string;
  readonly siteKey: Buffer;
}

/** As `SiteDatabase`, for an opened state: its store ends the connections. */
export interface SiteConnections extends SiteDatabase {
  readonly database: Database;
}
