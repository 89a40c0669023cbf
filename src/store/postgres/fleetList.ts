import type { Database, Row } from "./database.ts";

/** A site in numbers, as its leader sees it. */
export interface SiteState {
  readonly chargers: number;
  /** Chargers that are online and not silent. */
  readonly live: number;
  /** Open alarms. */
  readonly alarms: number;
  /** Severity of the gravest of them. Null: there is none. */
  readonly worst: string | null;
}

/** The state of a site in a term of its leader. */
export interface ReportedState extends SiteState {
  readonly site: string;
  readonly epoch: number;
}

/** A part of the list of sites. `after`: the last site before it. */
export interface SiteQuery {
  readonly after?: string;
  readonly limit?: number;
  /** A part of the name of a site, or of that of its leader. */
  readonly text?: string;
  /** `unled`: sites without a leader. `alarms`: sites with open alarms. */
  readonly state?: "unled" | "alarms";
}

/** Numbers of sites. `alarms`: with open alarms. */
export interface SiteCounts {
  readonly sites: number;
  readonly unled: number;
  readonly alarms: number;
}

/** A site for people. Times are ISO. */
export interface SiteRow {
  readonly site: string;
  /** Null: no process leads it. */
  readonly leader: string | null;
  readonly since: string | null;
  readonly epoch: number;
  readonly vehicles: number;
  readonly rows: number;
  readonly putAt: string;
  /** As a leader reported it last. Null: none has yet. */
  readonly state: (SiteState & { readonly at: string }) | null;
  /** Address of the page of the leader. Null: there is none that other machines reach. */
  readonly page: string | null;
}

/** The sites of a fleet for people, and their states as leaders report them. Methods throw errors of the database. */
export class FleetList {
  readonly #database: Pick<Database, "query">;

  constructor(database: Pick<Database, "query">) {
    this.#database = database;
  }

  async counts(): Promise<SiteCounts> {
    const [row] = await this.#database.query(COUNTS);
    return { sites: Number(row?.["sites"]), unled: Number(row?.["unled"]), alarms: Number(row?.["alarms"]) };
  }

  /** Sites by name. */
  async list({ after = "", limit, text = "", state }: SiteQuery = {}): Promise<readonly SiteRow[]> {
    const rows = await this.#database.query(LIST, [after, text, state ?? "all", limit ?? null]);
    return rows.map(rowIn);
  }

  /** Stores the states of sites that this process leads. A leader of an older term changes nothing. */
  async report(states: readonly ReportedState[]): Promise<void> {
    if (states.length > 0) await this.#database.query(REPORT, [JSON.stringify(states)]);
  }
}

function rowIn(row: Row): SiteRow {
  const text = (name: string): string | null => (row[name] === null ? null : String(row[name]));
  const leader = text("leader");
  const at = text("state_at");
  const state = {
    chargers: Number(row["chargers"]),
    live: Number(row["live"]),
    alarms: Number(row["alarms"]),
    worst: text("worst"),
  };
  return {
    site: String(row["id"]),
    leader,
    since: leader === null ? null : text("since"),
    epoch: Number(row["epoch"]),
    vehicles: Number(row["vehicles"]),
    rows: Number(row["head_seq"]),
    putAt: String(row["put_at"]),
    state: at === null ? null : { ...state, at },
    page: text("page"),
  };
}

const UTC = `YYYY-MM-DD"T"HH24:MI:SS.MS"Z"`;

const LEADER = "CASE WHEN s.lease_until > clock_timestamp() THEN s.leader END";

const COUNTS = `SELECT count(*) AS sites, count(*) FILTER (WHERE ${LEADER} IS NULL) AS unled,
    count(*) FILTER (WHERE st.alarms > 0) AS alarms
  FROM fleet_site f JOIN site s ON s.id = f.id LEFT JOIN fleet_state st ON st.id = f.id WHERE f.file <> ''`;

const LIST = `
SELECT f.id, ${LEADER} AS leader, p.page,
  to_char(s.led_since AT TIME ZONE 'UTC', '${UTC}') AS since, s.epoch, s.head_seq,
  (SELECT count(*) FROM fleet_vehicle v WHERE v.site = f.id) AS vehicles,
  to_char(f.put_at AT TIME ZONE 'UTC', '${UTC}') AS put_at,
  st.chargers, st.live, st.alarms, st.worst, to_char(st.at AT TIME ZONE 'UTC', '${UTC}') AS state_at
FROM fleet_site f JOIN site s ON s.id = f.id
  LEFT JOIN fleet_state st ON st.id = f.id
  LEFT JOIN fleet_process p ON p.process = ${LEADER}
WHERE f.file <> '' AND f.id > $1
  AND (strpos(lower(f.id), lower($2)) > 0 OR strpos(lower(${LEADER}), lower($2)) > 0)
  AND CASE $3 WHEN 'unled' THEN ${LEADER} IS NULL WHEN 'alarms' THEN st.alarms > 0 ELSE true END
ORDER BY f.id LIMIT $4`;

const REPORT = `INSERT INTO fleet_state
  SELECT x.site, x.epoch, clock_timestamp(), x.chargers, x.live, x.alarms, x.worst FROM json_to_recordset($1::json)
    AS x (site text, epoch bigint, chargers integer, live integer, alarms integer, worst text)
  ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, at = excluded.at, chargers = excluded.chargers,
    live = excluded.live, alarms = excluded.alarms, worst = excluded.worst
  WHERE fleet_state.epoch <= excluded.epoch`;
