import { entriesIn, textOf } from "../../domain/audit.ts";
import type { EditedEvent, Scope, StoredScope, StoredState } from "../../domain/changes.ts";
import { type Command, commandId, type CommandRecord, withAcknowledgement } from "../../domain/command.ts";
import type { EventSummary, KnownEvent, TrackedEvent } from "../../domain/event.ts";
import { type Hold, type ObservePeriod, storedHold } from "../../domain/hold.ts";
import { type Reason, reasonIn } from "../../domain/reason.ts";
import type { ReportObligation, ReportRecord } from "../../domain/report.ts";
import { earlier, eventId, type Instant, instant } from "../../domain/units.ts";
import { type BodyTable, macOf, eventIn } from "../bodies.ts";
import { entryOf } from "./auditRows.ts";
import { column, type Row } from "./database.ts";
import type { SiteDatabase } from "./siteDatabase.ts";

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
  const found = await readBodies(from, kind, which, ...values);
  return found.map(({ id, body, isOurs }): T => {
    if (!isOurs) throw new ChangedState(`the stored ${kind} ${id} was edited by another program`);
    return JSON.parse(body);
  });
}

/** A stored value was changed by another program. */
export class ChangedState extends Error {}

const SOME = "id = ANY ($3::text[]) ORDER BY ord";
const columns = (ids: Iterable<string>): readonly (string | null)[] => [...ids].map(column);

/** State as the last leader left it. Throws `ChangedState`, and errors of the database. */
export async function loadState(from: SiteDatabase, now: Instant): Promise<StoredState> {
  const { database, site } = from;
  const [state] = await database.query("SELECT evaluated_at, alive_at FROM site WHERE id = $1", [site]);
  const [newest] = await database.query("SELECT at FROM audit WHERE site = $1 ORDER BY seq DESC LIMIT 1", [
    site,
  ]);
  const recordedAt = momentIn(newest?.["at"]);
  const evaluated = momentIn(state?.["evaluated_at"]);
  const storedAt = latest(recordedAt, evaluated);
  const alive = momentIn(state?.["alive_at"]);
  const evaluatedAt = evaluated ?? storedAt;
  const commands = await trusted<CommandRecord>(from, "command");
  const [period] = await trusted<ObservePeriod>(from, "observe_period");
  return {
    ...(await loadEvents(from, earlier(evaluatedAt ?? now, now))),
    ...(await withReasons(from, commands)),
    holds: (await trusted<Hold>(from, "hold")).map(storedHold),
    observePeriod: period ?? null,
    ...(await loadOwed(from)),
    evaluatedAt,
    recordedAt,
    aliveAt: alive === null ? storedAt : latest(alive, storedAt),
  };
}

const momentIn = (value: unknown): Instant | null => (typeof value === "number" ? instant(value) : null);
const latest = (one: Instant | null, other: Instant | null): Instant | null =>
  one === null || other === null ? (one ?? other) : instant(Math.max(one, other));

/** Report obligations and open reports. */
export const loadOwed = async (from: SiteDatabase): Promise<Pick<StoredState, "duties" | "outbox">> => ({
  duties: await trusted<ReportObligation>(from, "duty", "true ORDER BY id"),
  outbox: await trusted<ReportRecord>(from, "report", "open ORDER BY ord"),
});

/** All events in order of arrival: a summary of each that is over by `at`, the others whole. */
async function loadEvents(
  from: SiteDatabase,
  at: Instant,
): Promise<{ readonly events: readonly TrackedEvent[]; readonly edited: readonly EditedEvent[] }> {
  const order = await readBodies(from, "event_summary");
  const summaries = order.map(({ body, isOurs }): EventSummary | null => (isOurs ? JSON.parse(body) : null));
  const open = order.filter((_found, index) => {
    const summary = summaries[index];
    return summary === null || summary === undefined || summary.until > at;
  });
  const whole = new Map<string, TrackedEvent>();
  const edited: EditedEvent[] = [];
  for (const { id, body, isOurs } of await readBodies(
    from,
    "event",
    SOME,
    open.map(({ id }) => id),
  )) {
    if (isOurs) whole.set(id, eventIn(body));
    else edited.push({ id: eventId(id), raw: body });
  }
  const events = order.flatMap(({ id }, index) => {
    const known = whole.get(id);
    if (known !== undefined) return [known];
    const summary = summaries[index];
    return summary === null || summary === undefined || summary.until > at ? [] : [summary];
  });
  return { events, edited };
}

/** Stored values of some events and chargers. Throws `ChangedState`, and errors of the database. */
export async function loadScope(from: SiteDatabase, scope: Scope): Promise<StoredScope> {
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
    ...(await withReasons(from, commands)),
    holds: holds.map(storedHold),
    observePeriod: period ?? null,
  };
}

/** Commands with their acknowledgement and their reason, both from the record. */
async function withReasons(
  { database, site }: SiteDatabase,
  records: readonly CommandRecord[],
): Promise<{ readonly commands: readonly CommandRecord[]; readonly reasons: ReadonlyMap<string, Reason> }> {
  const wanted = records.flatMap(({ command, standing }) => [
    command,
    ...(standing ? [standing.command] : []),
  ]);
  const rows = await database.query(
    `SELECT body, hash FROM audit JOIN json_to_recordset($2::json) AS x (charger text, command text) USING (charger, command)
     WHERE site = $1 AND kind IN ('decision', 'outcome') ORDER BY seq`,
    [
      site,
      JSON.stringify(wanted.map((command) => ({ charger: command.charger, command: commandId(command) }))),
    ],
  );
  const reasons = new Map<string, Reason>();
  const acknowledged = new Map<string, Instant>();
  const read = (row: Row): void => {
    for (const { kind, charger, command, at, facts } of entriesIn(entryOf(row))) {
      if (kind === "decision") {
        const reason = reasonIn(facts);
        if (reason !== null) reasons.set(String(command), reason);
        acknowledged.delete(`${charger} ${command}`);
      } else if (textOf(facts, "progress") === "acknowledged") acknowledged.set(`${charger} ${command}`, at);
    }
  };
  rows.forEach(read);
  const together = await database.query(
    `SELECT DISTINCT ON (l.charger) audit.body, audit.hash FROM acknowledged AS l
     JOIN audit ON audit.site = l.site AND audit.seq = l.seq
     WHERE l.site = $1 AND l.charger = ANY ($2::text[]) ORDER BY l.charger, l.seq DESC`,
    [site, columns(records.map(({ command }) => command.charger))],
  );
  together.forEach(read);
  return {
    commands: records.map((record) =>
      withAcknowledgement(record, acknowledged.get(arrivalKey(record.command)) ?? null),
    ),
    reasons,
  };
}

const arrivalKey = (command: Command): string => `${command.charger} ${commandId(command)}`;

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
