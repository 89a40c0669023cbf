import type { Alarm } from "../../domain/alarm.ts";
import type { PlugIn } from "../../domain/departure.ts";
import type { PriceSeries } from "../../domain/prices.ts";
import type { ReportRecord } from "../../domain/report.ts";
import type { Quarantined, ReportQuery, Store, StoredDepartures } from "../../domain/store.ts";
import { type ChargerId, chargerId, type Instant } from "../../domain/units.ts";
import type { BodyTable } from "../bodies.ts";
import { type FoundBody, readBodies } from "./bodies.ts";
import { column, type SiteDatabase } from "./database.ts";

/** Stored lists, as `Store` describes them. Values that another program changed are left out. */
const oursIn = (found: readonly FoundBody[]) =>
  found.filter(({ isOurs }) => isOurs).map(({ body }) => JSON.parse(body));

/** Stored reports, newest first, without edited ones. `event`: of this event only. Throws errors of the database. */
export async function readReports(
  from: SiteDatabase,
  { event, limit = 1000 }: ReportQuery,
): Promise<readonly ReportRecord[]> {
  const which = "($3::text IS NULL OR event = $3) ORDER BY ord DESC LIMIT $4";
  return oursIn(await readBodies(from, "report", which, column(event ?? null), limit));
}

/** A stored report. Null: none, or edited. Its body null: not stored, or edited. Throws errors of the database. */
export async function readReport(from: SiteDatabase, name: string): ReturnType<Store["report"]> {
  const [found] = await readBodies(from, "report", "id = $3", column(name));
  if (found?.isOurs !== true) return null;
  const [body] = await readBodies(from, "report_body", "id = $3", column(name));
  return { record: JSON.parse(found.body), body: body?.isOurs === true ? body.body : null };
}

/** Names of reports that are over, composed before this moment, oldest first. Throws errors of the database. */
export async function oldReports(
  from: SiteDatabase,
  before: Instant,
  most: number,
): Promise<readonly string[]> {
  const which = "NOT open AND moment < $3 ORDER BY ord LIMIT $4";
  return (await readBodies(from, "report", which, before, most)).map(({ id }) => id);
}

/** Lists that a start reads. */
export interface StoredLists {
  readonly alarms: readonly Alarm[];
  readonly departures: StoredDepartures;
  readonly prices: readonly PriceSeries[];
}

/** The lists among the values of a site. `of`: those of a kind. */
export function listsIn(of: (kind: BodyTable) => readonly FoundBody[]): StoredLists {
  const plugIns = of("plug_in").filter(({ isOurs }) => isOurs);
  return {
    alarms: oursIn(of("alarm")),
    departures: {
      departures: oursIn(of("departure").toSorted((one, other) => (one.id < other.id ? -1 : 1))),
      plugIns: new Map(plugIns.map(({ id, body }): [ChargerId, PlugIn] => [chargerId(id), JSON.parse(body)])),
    },
    prices: oursIn(of("prices")),
  };
}

/** Reads the lists, one statement for each. Throws errors of the database. */
export async function readLists(from: SiteDatabase): Promise<StoredLists> {
  const kinds = ["alarm", "departure", "plug_in", "prices"] as const;
  const found = new Map<BodyTable, readonly FoundBody[]>();
  for (const kind of kinds) found.set(kind, await readBodies(from, kind));
  return listsIn((kind) => found.get(kind) ?? []);
}

/** Rejected input, newest first. */
export async function readQuarantine(
  { database, site }: SiteDatabase,
  limit: number,
): Promise<readonly Quarantined[]> {
  const rows = await database.query(
    "SELECT body FROM quarantine WHERE site = $1 ORDER BY seq DESC LIMIT $2",
    [site, limit],
  );
  return rows.map((row): Quarantined => JSON.parse(String(row["body"])));
}
