import { setTimeout as sleep } from "node:timers/promises";

import { chargersOfSharedRow, entriesIn, textOf } from "../../domain/audit.ts";
import {
  type Change,
  isWithin,
  type Lost,
  type Scope,
  scopeOf,
  type StoredScope,
  type StoredState,
} from "../../domain/changes.ts";
import { type Answers, commandId, type CommandRecord, withAnswers } from "../../domain/command.ts";
import type { KnownEvent } from "../../domain/event.ts";
import { type Hold, type ObservePeriod, storedHold } from "../../domain/hold.ts";
import { type Reason, reasonIn } from "../../domain/reason.ts";
import type { ReportObligation, ReportRecord } from "../../domain/report.ts";
import { eventId } from "../../domain/units.ts";
import type { Binding } from "../../domain/vehicle.ts";
import { type BodyTable, macOf, eventIn } from "../bodies.ts";
import { entryOf } from "./auditRows.ts";
import type { Commits } from "./commits.ts";
import { column, type Database, faultOf, type Row, type SiteDatabase } from "./database.ts";

/** A stored value with its check. */
export interface FoundBody {
  readonly id: string;
  readonly body: string;
  /** False: another program changed it. */
  readonly isOurs: boolean;
}

/** Values of one kind, in the order in which they were first stored. `which`: a condition on the columns, from $3 on. */
export async function readBodies(
  { database, site, siteKey }: SiteDatabase,
  kind: BodyTable,
  which = "true ORDER BY ord",
  ...values: readonly unknown[]
): Promise<readonly FoundBody[]> {
  const rows = await database.query(
    `SELECT id, body, mac FROM body WHERE site = $1 AND kind = $2 AND ${which}`,
    [site, kind, ...values],
  );
  return rows.map((row) => foundBody(siteKey, kind, row));
}

/** A stored value. `isOurs`: its HMAC is of this site, kind and id. */
export function foundBody(siteKey: Buffer, kind: BodyTable, row: Row): FoundBody {
  const [id, body] = [String(row["id"]), String(row["body"])];
  return { id, body, isOurs: row["mac"] === macOf(siteKey, kind, id, body) };
}

/** Values that decide commands: a changed one is refused with the whole state. Throws then. */
async function trusted<T>(
  from: SiteDatabase,
  kind: BodyTable,
  which?: string,
  ...values: readonly unknown[]
): Promise<readonly T[]> {
  return trustedIn(kind, await readBodies(from, kind, which, ...values));
}

/** As `trusted`, of values that were read. */
export const trustedIn = (kind: BodyTable, found: readonly FoundBody[]) =>
  found.map(({ id, body, isOurs }) => {
    if (!isOurs) throw new ChangedState(`the stored ${kind} ${id} was edited by another program`);
    return JSON.parse(body);
  });

/** A stored value was changed by another program. */
export class ChangedState extends Error {}

/** Interval of the tries to read the stored state after a failed commit, ms. */
const READ_AGAIN_MS = 250;

const SOME = "id = ANY ($3::text[]) ORDER BY ord";
const columns = (ids: Iterable<string>): readonly (string | null)[] => [...ids].map(column);

/** Report obligations and open reports. Throws `ChangedState`, and errors of the database. */
export async function loadOwed(
  from: SiteDatabase,
  commits: Pick<Commits, "settle">,
): Promise<Pick<StoredState, "duties" | "outbox">> {
  const unknown = await commits.settle();
  if (unknown !== null) throw new Error(unknown);
  return {
    duties: await trusted<ReportObligation>(from, "duty", "true ORDER BY id"),
    outbox: await trusted<ReportRecord>(from, "report", "open ORDER BY ord"),
  };
}

/** Stored values of some events and chargers. Throws `ChangedState`, and errors of the database. */
async function loadScope(from: SiteDatabase, scope: Scope): Promise<StoredScope> {
  const { database, site } = from;
  const commands = await trusted<CommandRecord>(from, "command", SOME, columns(scope.chargers));
  const found = await readBodies(from, "event", SOME, columns(scope.events));
  const events = found.map(({ id, body, isOurs }): KnownEvent => {
    if (!isOurs) throw new ChangedState(`the stored event ${id} was edited by another program`);
    return eventIn(body);
  });
  const [period] = await trusted<ObservePeriod>(from, "observe_period");
  const holds = await trusted<Hold>(from, "hold", SOME, columns(scope.holds));
  return {
    events,
    ...(await reasonsOf(database, [{ site, records: commands }])).of(site, commands),
    holds: holds.map(storedHold),
    bindings: await trusted<Binding>(from, "binding", SOME, columns(scope.chargers)),
    observePeriod: period ?? null,
  };
}

interface RollbackParts {
  /** True: nothing will be rolled back any more. */
  readonly isOver: () => boolean;
  /** A commit whose answer was lost may arrive behind what is read, until it is settled. */
  readonly commits: Pick<Commits, "settle">;
  /** Drops the changes that were written since, which were decided on a state that is not stored. */
  readonly dropLater: () => readonly Change[];
}

/** The stored state of dropped changes, as soon as it can be read. Throws `ChangedState`. */
export async function loadDropped(
  from: SiteDatabase,
  first: readonly Change[],
  { isOver, commits, dropLater }: RollbackParts,
): Promise<Lost> {
  let dropped = first;
  while (!isOver()) {
    if ((await commits.settle()) !== null) {
      await sleep(READ_AGAIN_MS);
      continue;
    }
    const scope = scopeOf(dropped);
    const stored = await loadScope(from, scope).catch((error: unknown) => {
      // No later read differs. The next start refuses that value by name.
      if (error instanceof ChangedState) throw error;
      faultOf(error);
      return sleep(READ_AGAIN_MS, null);
    });
    if (stored === null) continue;
    const later = dropLater();
    dropped = [...dropped, ...later];
    if (isWithin(scopeOf(later), scope)) return { dropped, stored };
  }
  return { dropped, stored: null };
}

/** A stored event, whole or its summary. A changed one is left out. */
export async function archived<T>(
  from: SiteDatabase,
  kind: "event" | "event_summary",
  ids: readonly string[],
  read: (body: string) => T,
): Promise<ReadonlyMap<ReturnType<typeof eventId>, T>> {
  const found = await readBodies(from, kind, SOME, columns(ids));
  const whole = new Map(found.filter(({ isOurs }) => isOurs).map(({ id, body }) => [id, read(body)]));
  return new Map(
    ids.flatMap((id) => {
      const event = whole.get(column(id) ?? "");
      return event === undefined ? [] : [[eventId(id), event] as const];
    }),
  );
}

/** Commands of a site as stored. */
interface CommandsOfSite {
  readonly site: string;
  readonly records: readonly CommandRecord[];
}

/** Commands with their answers, and their reasons by command id. */
interface Reasoned {
  readonly commands: readonly CommandRecord[];
  readonly reasons: ReadonlyMap<string, Reason>;
}

/** Reasons and answers of the commands of many sites, both from the record. Throws errors of the database. */
export async function reasonsOf(
  database: Pick<Database, "query">,
  sites: readonly CommandsOfSite[],
): Promise<{ readonly of: (site: string, records: readonly CommandRecord[]) => Reasoned }> {
  const wanted = sites.flatMap(({ site, records }) =>
    commandsOf(records).map((command) => ({ site, ...command })),
  );
  const text = JSON.stringify(wanted);
  const [rows, together] =
    wanted.length === 0
      ? [[], []]
      : await Promise.all([database.query(DECIDED, [text]), database.query(TOGETHER, [text])]);
  const ofSite = Map.groupBy([...rows, ...together], (row) => String(row["site"]));
  return { of: (site, records) => reasonedBy(ofSite.get(site) ?? [], records) };
}

/** Commands of these records, also those that stand until the last one arrives. */
const commandsOf = (records: readonly CommandRecord[]) =>
  records.flatMap(({ command, standing }) =>
    [command, ...(standing ? [standing.command] : [])].map((each) => ({
      charger: column(each.charger),
      command: commandId(each),
    })),
  );

/**
 * Reasons and answers as of `reasonsOf`, from the newest rows of the record, oldest first, which a start has read anyway.
 * Null: those rows do not reach back to the decision of each command. `isWhole`: there are no other rows.
 */
export function reasonsIn(
  tail: readonly Row[],
  isWhole: boolean,
  records: readonly CommandRecord[],
): Reasoned | null {
  const commands = commandsOf(records);
  const undecided = new Set(commands.map(({ charger, command }) => `${charger} ${command}`));
  const unshared = new Set(commands.map(({ charger }) => charger));
  const [single, together]: [Row[], Row[]] = [[], []];
  for (const row of tail.toReversed()) {
    const { kind, charger, command } = row;
    const key = `${String(charger)} ${String(command)}`;
    if (kind === "outcome" && charger === null && unshared.size > 0) {
      const chargers = chargersOfSharedRow(entryOf(row)).map(column);
      if (chargers.filter((each) => unshared.delete(each)).length > 0) together.unshift(row);
    } else if ((kind === "decision" || kind === "outcome") && undecided.has(key)) {
      single.unshift(row);
      if (kind === "decision") undecided.delete(key);
    }
  }
  return undecided.size > 0 && !isWhole ? null : reasonedBy([...single, ...together], records);
}

/** `rows`: those of single commands first, then those of many acknowledgements together. */
function reasonedBy(rows: readonly Row[], records: readonly CommandRecord[]): Reasoned {
  const reasons = new Map<string, Reason>();
  const answers = new Map<string, Answers>();
  for (const row of rows)
    for (const { kind, charger, command, at, facts } of entriesIn(entryOf(row))) {
      const key = `${charger} ${command}`;
      const known = answers.get(key) ?? UNANSWERED;
      const progress = textOf(facts, "progress");
      if (kind === "decision") {
        const reason = reasonIn(facts);
        if (reason !== null) reasons.set(String(command), reason);
        answers.delete(key);
      } else if (progress === "acknowledged") answers.set(key, { ...known, acknowledgedAt: at });
      else if (progress === "accepted") answers.set(key, { ...known, isAccepted: true });
    }
  return {
    commands: records.map((record) => {
      const { command } = record;
      return withAnswers(record, answers.get(`${command.charger} ${commandId(command)}`) ?? UNANSWERED);
    }),
    reasons,
  };
}

const UNANSWERED: Answers = { acknowledgedAt: null, isAccepted: false };

const WANTED = "json_to_recordset($1::json) AS x (site text, charger text, command text)";

/** The last decision of each command, and what followed it. It is searched from the newest row of the charger back. */
const DECIDED = `SELECT a.site, a.body, a.hash FROM ${WANTED}
  LEFT JOIN LATERAL (SELECT seq FROM audit WHERE site = x.site AND charger = x.charger AND command = x.command
    AND kind = 'decision' ORDER BY seq DESC LIMIT 1) AS last ON true
  JOIN audit AS a ON a.site = x.site AND a.charger = x.charger AND a.seq >= coalesce(last.seq, 0)
  WHERE a.command = x.command AND a.kind IN ('decision', 'outcome') ORDER BY a.site, a.seq`;

/** The newest row of many acknowledgements with each charger. One row has many chargers, and is read once. */
const TOGETHER = `SELECT a.site, a.body, a.hash FROM (
    SELECT DISTINCT x.site, newest.seq FROM ${WANTED} CROSS JOIN LATERAL (
      SELECT seq FROM acknowledged WHERE site = x.site AND charger = x.charger ORDER BY seq DESC LIMIT 1) AS newest
  ) AS l JOIN audit AS a ON a.site = l.site AND a.seq = l.seq ORDER BY a.site, a.seq`;
