import type { Command } from "commander";

import type { Config } from "../../config/schema.ts";
import type { StateOfSite } from "../../daemon/offline.ts";
import { type AuditKind, type Json, severityOf } from "../../domain/audit.ts";
import type { AuditQuery, Store, Verified } from "../../domain/store.ts";
import { type Instant, instant, iso } from "../../domain/units.ts";
import { wallClock } from "../../platform/clock.ts";
import { recordConfiguration } from "../configuration.ts";
import { MOMENT, readMoment, complain, fail, type ExitCode, say, writeLine, type Verb } from "../output.ts";
import { askOrRead, LONG_PATIENCE_MS } from "../storedState.ts";

interface AuditOptions {
  readonly config: string | undefined;
  readonly json: boolean;
  readonly event?: string;
  readonly charger?: string;
  /** First and last moment, as typed. */
  readonly since?: string;
  readonly until?: string;
  /** True: only rows that the log shows as a warning or an error. */
  readonly problems: boolean;
}

interface Row {
  readonly seq: number;
  /** ISO. */
  readonly at: string;
  readonly kind: AuditKind;
  readonly words: string;
  readonly facts: Json;
}

/** Rows after a `seq`, at most `limit`. A string is the reason why they cannot be read. */
type Page = (after: number, limit: number, newest?: boolean) => Promise<readonly Row[] | string>;

/** Rows to show. Null: no limit. */
interface Wanted {
  readonly since: Instant | null;
  readonly until: Instant | null;
  readonly problems: boolean;
}

/** The wanted rows of a part of the record. `after`: where the next part begins. Null: no other row is wanted. */
type Part = { readonly rows: readonly Row[]; readonly after: number | null };

/** Rows per request to a daemon. The record may be much longer. */
const PAGE = 5000;
/**
 * Wanted rows that are read in one opening of the stored state, which takes seconds with a year of history. It is closed
 * before they are printed: a daemon that starts needs it, and a pager may wait for hours.
 */
const STORED_PART = 50_000;
const DAY_MS = 86_400_000;

const failed = (reason: string): ExitCode => fail(1, reason);

/** `audit`: prints the record, oldest row first. */
async function audit(options: AuditOptions, now: () => Instant): Promise<ExitCode> {
  const { json, event, charger, problems } = options;
  const config = (await recordConfiguration(options.config))?.config ?? null;
  if (config === null) return 2;
  const span = spanOf(options, config.site.timezone, now());
  if (typeof span === "string") return fail(2, span);
  const clock = wallClock(config.site.timezone, now);
  const id = event?.normalize("NFC").toWellFormed();
  const query = { ...(id === undefined ? {} : { event: id }), ...(charger === undefined ? {} : { charger }) };
  const start = span.since === null ? 0 : await seqBefore(span.since, config, query);
  if (typeof start === "string") return failed(start);
  let shown = 0;
  for (let after: number | null = start; after !== null;) {
    const part: Part | string = await partAfter(after, { ...span, problems }, config, query);
    if (typeof part === "string") return failed(part);
    for (const row of part.rows) {
      if (!json && shown === 0) say(`times in ${config.site.timezone}`);
      shown += 1;
      writeLine(json ? JSON.stringify(row) : `${clock(instant(Date.parse(row.at)))}  ${row.words}`);
    }
    after = part.after;
  }
  return shown > 0 ? 0 : printEmpty(options, id, config);
}

type RowsOf = Pick<AuditQuery, "event" | "charger">;

/** Pages of the record, from the running daemon or from the stored state. */
const pagesOf =
  (config: StateOfSite, query: RowsOf): Page =>
  (after, limit, newest = false) =>
    askOrRead(config, addressOf(query, after, limit, newest), ({ store }) =>
      storedPages(store, query)(after, limit, newest),
    );

/** Pages of a stored state that is open. */
const storedPages =
  (store: Pick<Store, "audit">, query: RowsOf) =>
  async (after: number, limit: number, newest = false): Promise<readonly Row[]> => {
    const rows = await store.audit({ ...query, after, limit, newest });
    return rows.map((row) => ({ ...row, at: iso(row.at) }));
  };

/** A string is the reason why it cannot be read. */
async function partAfter(
  after: number,
  wanted: Wanted,
  config: StateOfSite,
  query: RowsOf,
): Promise<Part | string> {
  const answer = await askOrRead<readonly Row[] | Part>(
    config,
    addressOf(query, after, PAGE, false),
    async ({ store }) => {
      const rows: Row[] = [];
      let next: number | null = after;
      while (next !== null && rows.length < STORED_PART) {
        const part = wantedOf(await storedPages(store, query)(next, PAGE), wanted);
        rows.push(...part.rows);
        next = part.after;
      }
      return { rows, after: next };
    },
  );
  return typeof answer === "object" && !("rows" in answer) ? wantedOf(answer, wanted) : answer;
}

/** `rows`: a page, which may have fewer rows than asked for. */
function wantedOf(rows: readonly Row[], { since, until, problems }: Wanted): Part {
  const last = rows.at(-1);
  const [from, end] = [since ?? -Infinity, until ?? Infinity];
  const times = rows.map(({ at }) => Date.parse(at));
  // Rows are in order of time, except where the clock was set back.
  const isOver = times.every((at) => at >= end + DAY_MS);
  return {
    rows: rows.filter((row, index) => {
      const at = times[index] ?? Infinity;
      return at >= from && at < end && !(problems && severityOf(row) === "info");
    }),
    after: last === undefined || isOver ? null : last.seq,
  };
}

function addressOf(query: RowsOf, after: number, limit: number, newest: boolean): string {
  const window = { after: String(after), limit: String(limit), newest: String(newest) };
  return `/audit?${new URLSearchParams({ ...query, ...window }).toString()}`;
}

/** The newest rows since a moment, oldest first. A string is the reason why they cannot be read. */
export async function rowsSince(
  config: StateOfSite,
  since: Instant,
  most: number,
): Promise<readonly Row[] | string> {
  const start = await seqBefore(since, config, {});
  if (typeof start === "string") return start;
  const found: Row[] = [];
  for (let after: number | null = start; after !== null;) {
    const part: Part | string = await partAfter(after, { since, until: null, problems: false }, config, {});
    if (typeof part === "string") return part;
    found.push(...part.rows);
    if (found.length > most) found.splice(0, found.length - most);
    after = part.after;
  }
  return found;
}

/** A string is the mistake in the moments. */
function spanOf(
  options: AuditOptions,
  zone: string,
  now: Instant,
): { readonly since: Instant | null; readonly until: Instant | null } | string {
  const read = (text: string | undefined): Instant | null | undefined =>
    text === undefined ? null : (readMoment(text, zone, now) ?? undefined);
  const [since, until] = [read(options.since), read(options.until)];
  if (since === undefined) return `--since ${options.since}: a moment is ${MOMENT}`;
  if (until === undefined) return `--until ${options.until}: a moment is ${MOMENT}`;
  if (since !== null && until !== null && until <= since)
    return `--until ${options.until} is not after --since ${options.since}: no moment lies between them`;
  return { since, until };
}

/** The `seq` after which the rows of this moment begin. A stored state is opened once for the whole search. */
async function seqBefore(since: Instant, config: StateOfSite, query: RowsOf): Promise<number | string> {
  const answer = await askOrRead<readonly Row[] | number | string>(
    config,
    addressOf(query, 0, 1, true),
    ({ store }) => searchBefore(since, storedPages(store, query)),
  );
  return typeof answer === "object" ? searchBefore(since, pagesOf(config, query)) : answer;
}

/**
 * Searches by bisection. Rows are in order of time, except where the clock was set back. So the search aims at one day
 * before.
 */
async function searchBefore(since: Instant, page: Page): Promise<number | string> {
  const from = since - DAY_MS;
  const last = await page(0, 1, true);
  if (typeof last === "string") return last;
  let [low, high] = [0, last[0]?.seq ?? 0];
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const rows = await page(middle, 1);
    if (typeof rows === "string") return rows;
    const [row] = rows;
    if (row === undefined || Date.parse(row.at) >= from) high = middle;
    else low = Math.max(row.seq, middle + 1);
  }
  return low;
}

/**
 * Prints why the output is empty. A mistyped charger must not look like a quiet night. The record knows chargers that have left
 * the configuration. An event may not have arrived yet: scripts wait for its first row.
 */
async function printEmpty(
  options: AuditOptions,
  event: string | undefined,
  config: Config,
): Promise<ExitCode> {
  const { charger } = options;
  const { chargers } = config;
  if (charger !== undefined && !chargers.some(({ id }) => id === charger)) {
    const newest = await pagesOf(config, { charger })(0, 1, true);
    if (typeof newest !== "string" && newest.length === 0) {
      const ids = chargers.map(({ id }) => id).join(", ");
      return fail(2, `there is no charger ${charger}; the configuration has ${ids}`);
    }
  }
  complain(nothingOf(options, event));
  return 0;
}

function nothingOf({ charger, since, until, problems }: AuditOptions, event: string | undefined): string {
  const of = [event === undefined ? [] : `event ${event}`, charger ?? []].flat().join(" at ");
  if (since !== undefined || until !== undefined || problems)
    return `the record has ${problems ? "no problem" : "nothing"}${of === "" ? "" : ` of ${of}`}${since === undefined && until === undefined ? "" : " in that time"}`;
  return of === "" ? "the record is empty" : `the record has nothing of ${of}`;
}

/** `audit verify`: verifies the hash chain from the first row to the authenticated head. */
async function auditVerify(named: string | undefined, json: boolean): Promise<ExitCode> {
  const config = (await recordConfiguration(named))?.config ?? null;
  if (config === null) return 2;
  const verified = await askOrRead<Verified>(config, "/audit/verify", ({ store }) => store.verify(), {
    patienceMs: LONG_PATIENCE_MS,
    onBroken: (broken) => broken,
  });
  if (typeof verified === "string") return failed(verified);
  if (json) {
    say(JSON.stringify(verified));
    return verified.ok ? 0 : 1;
  }
  if (!verified.ok) {
    const where =
      verified.seq === null ? "the stored state was changed" : `the record is broken at row ${verified.seq}`;
    return fail(1, `${where}: ${verified.reason}`);
  }
  say(`the record is whole: ${verified.rows} rows, head ${verified.head}`);
  const { readings = 0, unsigned = 0 } = verified;
  say(`events, holds and reports are as they were stored, and so are ${readings} messages with readings`);
  if (unsigned > 0) say(`not checked: ${unsigned} messages of an earlier version, which signed no readings`);
  return 0;
}

export const auditVerb: Verb = (verb, { config, now, done }) => {
  const record = verb
    .option("--json", "print one JSON object per line", false)
    .option("--event <id>", "only rows of this event")
    .option("--charger <id>", "only rows of this charger")
    .option(
      "--since <moment>",
      "only rows from then on: 2026-11-21T05:30, or 05:30 for today; in the site's zone",
    )
    .option("--until <moment>", "only rows before then")
    .option("--problems", "only rows that the log shows as a warning or an error", false)
    .action(async (flags: Omit<AuditOptions, "config">) => {
      done(await audit({ ...flags, config: config() }, now));
    });
  record
    .command("verify")
    .description(
      "verify the hash chain from the first row to the authenticated head; fails if a row was changed or is missing",
    )
    .option("--json", "print one JSON object: ok, and rows and head, or seq and reason", false)
    .action(async (_options: object, command: Command) => {
      done(await auditVerify(config(), command.optsWithGlobals<{ json: boolean }>().json));
    });
};
