import type { AuditRow, RecordRow } from "../../domain/audit.ts";
import type { EditedEvent, StoredState } from "../../domain/changes.ts";
import type { CommandRecord } from "../../domain/command.ts";
import type { EventSummary, TrackedEvent } from "../../domain/event.ts";
import { storedHold } from "../../domain/hold.ts";
import type { Broken } from "../../domain/store.ts";
import {
  after,
  type ChargerId,
  earlier,
  eventId,
  type Instant,
  instant,
  minutes,
} from "../../domain/units.ts";
import { type BodyTable, eventIn } from "../bodies.ts";
import type { Head } from "../chain.ts";
import { queryWrites, readOpenOutages, readRejected, writesIn } from "./auditRows.ts";
import { ChangedState, type FoundBody, foundBody, reasonsIn, reasonsOf, trustedIn } from "./bodies.ts";
import type { Database, Row, SiteDatabase } from "./database.ts";
import { listsIn, type StoredLists } from "./lists.ts";
import { isWholeRecord, readTails, verifyTail } from "./verify.ts";

/** A site, with the key for its checks. */
interface SiteToRead {
  readonly site: string;
  readonly siteKey: Buffer;
}

/** A site as it is stored. */
interface ReadState {
  readonly storedState: StoredState;
  /** Number of the last commit. */
  readonly commits: number;
  readonly sealed: string;
  /** Epoch of the first run after a restore of the database. Zero: none yet. Null: no restore is known. */
  readonly restored: number | null;
  readonly lists: StoredLists;
}

/** Its values but for whole events. */
interface Site extends SiteToRead {
  readonly row: Row;
  readonly bodies: ReadonlyMap<BodyTable, readonly FoundBody[]>;
  readonly commands: readonly CommandRecord[];
  /** Until when events are over, at a start. */
  readonly at: Instant;
  readonly summaries: readonly (EventSummary | null)[];
}

/**
 * The states of many sites as their last leaders left them, by few statements. `ChangedState`: another program edited a
 * value. A site that is not there is left out. `tails`: the newest rows of their records. Throws errors of the database.
 */
export async function readStates(
  database: Pick<Database, "query">,
  sites: readonly SiteToRead[],
  now: Instant,
  tails: ReturnType<typeof readTails> = Promise.resolve(new Map()),
): Promise<ReadonlyMap<string, ReadState | ChangedState>> {
  const names = sites.map(({ site }) => site);
  const [rows, stored, tailOf] = await Promise.all([
    database.query(SITES, [names]),
    database.query(BODIES, [names]),
    tails,
  ]);
  const rowOf = new Map(rows.map((row) => [String(row["id"]), row]));
  const bodiesOf = Map.groupBy(stored, (row) => String(row["site"]));
  const read = new Map<string, ReadState | ChangedState>();
  const whole: Site[] = [];
  for (const site of sites) {
    const row = rowOf.get(site.site);
    if (row === undefined) continue;
    orChanged(read, site.site, () => void whole.push(siteIn(site, row, bodiesOf.get(site.site) ?? [], now)));
  }
  const open = whole.flatMap((each) => openEvents(each).map((id) => ({ site: each.site, id })));
  const known = new Map(
    whole.map(({ site, commands }) => {
      const tail = tailOf.get(site) ?? [];
      return [site, reasonsIn(tail, tail.length > 0 && isWholeRecord(tail), commands)];
    }),
  );
  const [events, reasons] = await Promise.all([
    open.length === 0 ? [] : database.query(EVENTS, [JSON.stringify(open)]),
    reasonsOf(
      database,
      whole
        .filter(({ site }) => known.get(site) === null)
        .map(({ site, commands }) => ({ site, records: commands })),
    ),
  ]);
  const eventsOf = Map.groupBy(events, (row) => String(row["site"]));
  for (const site of whole)
    orChanged(read, site.site, () => {
      const commands = known.get(site.site) ?? reasons.of(site.site, site.commands);
      read.set(site.site, stateIn(site, eventsOf.get(site.site) ?? [], commands));
    });
  return read;
}

/** An edited value makes one site unusable, and no other. */
function orChanged(read: Map<string, ReadState | ChangedState>, site: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ChangedState)) throw error;
    read.set(site, error);
  }
}

function siteIn({ site, siteKey }: SiteToRead, row: Row, stored: readonly Row[], now: Instant): Site {
  const rows = Map.groupBy(stored, ({ kind }) => String(kind) as BodyTable);
  const bodies = new Map(
    [...rows].map(([kind, own]) => [kind, own.map((each) => foundBody(siteKey, kind, each))] as const),
  );
  const evaluatedAt = momentIn(row["evaluated_at"]) ?? momentIn(row["recorded_at"]);
  return {
    site,
    siteKey,
    row,
    bodies,
    commands: trustedIn("command", bodies.get("command") ?? []),
    at: earlier(evaluatedAt ?? now, now),
    summaries: (bodies.get("event_summary") ?? []).map(({ body, isOurs }) =>
      isOurs ? JSON.parse(body) : null,
    ),
  };
}

/** Events that are not over, and those of which that is not known. */
function openEvents({ bodies, summaries, at }: Site): readonly string[] {
  return (bodies.get("event_summary") ?? [])
    .filter((_found, index) => {
      const summary = summaries[index] ?? null;
      return summary === null || summary.until > at;
    })
    .map(({ id }) => id);
}

function stateIn(
  site: Site,
  events: readonly Row[],
  commands: Pick<StoredState, "commands" | "reasons">,
): ReadState {
  const { bodies, row } = site;
  const of = (kind: BodyTable): readonly FoundBody[] => bodies.get(kind) ?? [];
  const recordedAt = momentIn(row["recorded_at"]);
  const evaluated = momentIn(row["evaluated_at"]);
  const alive = momentIn(row["alive_at"]);
  const storedAt = latest(recordedAt, evaluated);
  const [period] = trustedIn("observe_period", of("observe_period"));
  return {
    commits: Number(row["commit_no"]),
    sealed: String(row["sealed"]),
    restored: row["restored"] === null ? null : Number(row["restored"]),
    lists: listsIn(of),
    storedState: {
      ...eventsIn(site, events),
      ...commands,
      holds: trustedIn("hold", of("hold")).map(storedHold),
      bindings: trustedIn("binding", of("binding")),
      observePeriod: period ?? null,
      duties: trustedIn("duty", byId(of("duty"))),
      outbox: trustedIn("report", of("report")),
      evaluatedAt: evaluated ?? storedAt,
      recordedAt,
      aliveAt: alive === null ? storedAt : latest(alive, storedAt),
    },
  };
}

/** All events in order of arrival: a summary of each that is over, the others whole. */
function eventsIn(
  { siteKey, bodies, summaries, at }: Site,
  rows: readonly Row[],
): Pick<StoredState, "events" | "edited"> {
  const whole = new Map<string, TrackedEvent>();
  const edited: EditedEvent[] = [];
  for (const { id, body, isOurs } of rows.map((row) => foundBody(siteKey, "event", row))) {
    if (isOurs) whole.set(id, eventIn(body));
    else edited.push({ id: eventId(id), raw: body });
  }
  const events = (bodies.get("event_summary") ?? []).flatMap(({ id }, index) => {
    const known = whole.get(id);
    if (known !== undefined) return [known];
    const summary = summaries[index] ?? null;
    return summary === null || summary.until > at ? [] : [summary];
  });
  return { events, edited };
}

const byId = (found: readonly FoundBody[]): readonly FoundBody[] =>
  found.toSorted((one, other) => (one.id < other.id ? -1 : 1));
const momentIn = (value: unknown): Instant | null => (typeof value === "number" ? instant(value) : null);
const latest = (one: Instant | null, other: Instant | null): Instant | null =>
  one === null || other === null ? (one ?? other) : instant(Math.max(one, other));

const SITES = `SELECT id, sealed, restored, commit_no, evaluated_at, alive_at,
    (SELECT at FROM audit WHERE site = id ORDER BY seq DESC LIMIT 1) AS recorded_at
  FROM site WHERE id = ANY ($1::text[])`;

/** Values in the order in which they were first stored. Reports that were sent are many, and not needed. */
const BODIES = `SELECT site, kind, id, body, mac FROM (
    SELECT * FROM body WHERE site = ANY ($1::text[]) AND kind IN ('command', 'event_summary', 'hold', 'binding',
      'observe_period', 'duty', 'alarm', 'departure', 'plug_in', 'prices')
    UNION ALL SELECT * FROM body WHERE site = ANY ($1::text[]) AND kind = 'report' AND open
  ) AS stored ORDER BY site, kind, ord`;

const EVENTS = `SELECT body.site, body.id, body.body, body.mac FROM json_to_recordset($1::json) AS x (site text, id text)
  JOIN body ON body.site = x.site AND body.kind = 'event' AND body.id = x.id ORDER BY body.site, body.ord`;

/** Everything that a new leader reads of a site. */
interface Start extends Pick<ReadState, "storedState" | "lists" | "restored"> {
  readonly ok: true;
  readonly head: Head;
  /** Number of the last commit. */
  readonly commits: number;
  readonly outages: readonly RecordRow[];
  /** The newest rows about rejected input, newest first. */
  readonly rejected: readonly AuditRow[];
  readonly writes: ReadonlyMap<ChargerId, readonly Instant[]>;
}

/** A site as it was read. `ok` false: why it cannot be used. */
export type StartRead = Start | { readonly ok: false; readonly reason: string; readonly broken?: Broken };

/**
 * Reads what the last leaders of many sites left, by few statements. The leases must be ours: no commit of another
 * process can follow then. A site that is not there is left out. Throws errors of the database.
 */
export async function readStarts(
  database: SiteDatabase["database"],
  sites: readonly SiteToRead[],
  now: Instant,
): Promise<ReadonlyMap<string, StartRead>> {
  const names = sites.map(({ site }) => site);
  const read = readTails(database, names);
  const [states, tails, outages, rejected] = await Promise.all([
    readStates(database, sites, now, read),
    read,
    readOpenOutages(database, names),
    readRejected(database, names),
  ]);
  const starts = new Map<string, StartRead>();
  for (const each of sites) {
    const { site } = each;
    const state = states.get(site);
    if (state === undefined) continue;
    const from = { ...each, database };
    const rows = { outages: outages.get(site) ?? [], rejected: rejected.get(site) ?? [] };
    starts.set(site, await startOf(from, state, tails.get(site) ?? [], rows, now));
  }
  return starts;
}

async function startOf(
  from: SiteDatabase,
  state: ReadState | ChangedState,
  tail: readonly Row[],
  rows: Pick<Start, "outages" | "rejected">,
  now: Instant,
): Promise<StartRead> {
  if (state instanceof ChangedState) return { ok: false, reason: state.message };
  const { storedState, lists, restored, commits, sealed } = state;
  const head = verifyTail(from.siteKey, tail, sealed);
  if ("ok" in head) return { ok: false, reason: `audit record: ${head.reason}`, broken: head };
  const hourAgo = after(now, minutes(-60));
  const writes = writesIn(tail, hourAgo, isWholeRecord(tail)) ?? (await queryWrites(from, hourAgo));
  return { ok: true, storedState, lists, restored, head, commits, ...rows, writes };
}
