import type { AuditEntry, AuditRow } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import { departureKey } from "../../domain/departure.ts";
import { summaryOf } from "../../domain/event.ts";
import { priceKey } from "../../domain/prices.ts";
import { obligationKey } from "../../domain/report.ts";
import type { Instant } from "../../domain/units.ts";
import { type BodyTable, macOf, eventBody } from "../bodies.ts";
import { type ChainRow, nextRows, numbered, type Head, rowText } from "../chain.ts";
import { column } from "./database.ts";

/** Rejected input is kept for inspection: the newest rows. */
const QUARANTINE_ROWS = 1000;

/** A stored value of the table `body`. `moment`: when a report was composed. */
interface StoredBody {
  readonly kind: BodyTable;
  readonly id: string;
  readonly event: string | null;
  readonly open: boolean;
  readonly moment: number | null;
  readonly body: string;
  readonly mac: string;
}

interface StoredRow {
  readonly seq: number;
  readonly at: number;
  readonly kind: string;
  readonly charger: string | null;
  readonly event: string | null;
  readonly command: string | null;
  readonly body: string;
  readonly hash: string;
}

/** Rows of one commit, table by table. The last of several changes of one value counts. */
export interface Batch {
  readonly head: Head;
  /** Rows as the rest of the program reads them. */
  readonly rows: readonly AuditRow[];
  readonly audit: readonly StoredRow[];
  readonly acknowledged: readonly { readonly charger: string; readonly seq: number }[];
  readonly bodies: readonly StoredBody[];
  readonly forgotten: readonly { readonly kind: BodyTable; readonly id: string }[];
  /** Events whose duties are deleted. */
  readonly noDuties: readonly string[];
  readonly quarantined: readonly { readonly body: string }[];
  /** Deliveries of stand-ins that are deleted. */
  readonly taken: readonly number[];
  /** Audit rows up to this one are deleted. */
  readonly prunedThrough: number;
  readonly evaluatedAt: Instant | null;
}

/** Changes in order as the rows of one commit, which continue the chain after `start`. */
export function batchOf(siteKey: Buffer, start: Head, changes: readonly Change[]): Batch {
  const collected = new Collected(siteKey);
  for (const change of changes) collected.add(change);
  const { bodies, forgotten, noDuties, quarantined, taken, prunedThrough, evaluatedAt } = collected;
  return {
    ...rowsAfter(start, collected.entries),
    bodies: [...bodies.values()],
    forgotten: [...forgotten.values()],
    noDuties: [...noDuties],
    quarantined: quarantined.slice(-QUARANTINE_ROWS),
    taken,
    prunedThrough,
    evaluatedAt,
  };
}

/** What the changes of one commit store and delete. */
class Collected {
  readonly #siteKey: Buffer;
  readonly entries: AuditEntry[] = [];
  readonly bodies = new Map<string, StoredBody>();
  readonly forgotten = new Map<string, { kind: BodyTable; id: string }>();
  readonly noDuties = new Set<string>();
  readonly quarantined: { body: string }[] = [];
  readonly taken: number[] = [];
  prunedThrough = 0;
  evaluatedAt: Instant | null = null;

  constructor(siteKey: Buffer) {
    this.#siteKey = siteKey;
  }

  add(change: Change): void {
    switch (change.kind) {
      case "event": {
        const { known } = change;
        const body = eventBody(known);
        this.#put("event", known.id, body);
        this.#put("event_summary", known.id, summaryOf(known, body.length));
        break;
      }
      case "eventForgotten": {
        this.#forget("event", change.id);
        this.#forget("event_summary", change.id);
        const event = column(change.id) ?? "";
        this.noDuties.add(event);
        for (const [key, stored] of this.bodies)
          if (stored.kind === "duty" && stored.event === event) this.bodies.delete(key);
        break;
      }
      case "command":
        this.#put("command", change.record.command.charger, change.record);
        break;
      case "commandForgotten":
        this.#forget("command", change.charger);
        break;
      case "hold":
        this.#put("hold", change.hold.id, change.hold);
        break;
      case "holdForgotten":
        this.#forget("hold", change.id);
        break;
      case "binding":
        this.#put("binding", change.binding.charger, change.binding);
        break;
      case "bindingForgotten":
        this.#forget("binding", change.charger);
        break;
      case "observePeriod":
        if (change.period === null) this.#forget("observe_period", "site");
        else this.#put("observe_period", "site", change.period);
        break;
      case "alarm":
        this.#put("alarm", change.alarm.key, change.alarm);
        break;
      case "alarmForgotten":
        this.#forget("alarm", change.key);
        break;
      case "departure":
        this.#put("departure", departureKey(change.departure), change.departure);
        break;
      case "departureForgotten":
        this.#forget("departure", change.key);
        break;
      case "plugIn":
        this.#put("plug_in", change.charger, change.plugIn);
        break;
      case "plugInForgotten":
        this.#forget("plug_in", change.charger);
        break;
      case "prices":
        this.#put("prices", priceKey(change.series), change.series);
        break;
      case "duty":
        this.#put("duty", obligationKey(change.duty), change.duty, { event: column(change.duty.event) });
        break;
      case "report": {
        const { name, event, nextTry, composedAt } = change.record;
        const about = { event: column(event), open: nextTry !== null, moment: composedAt };
        this.#put("report", name, change.record, about);
        if (change.body !== null) this.#put("report_body", name, column(change.body) ?? "");
        break;
      }
      case "reportForgotten":
        this.#forget("report", change.name);
        this.#forget("report_body", change.name);
        break;
      case "deliveryTaken":
        this.taken.push(change.stored);
        break;
      case "evaluated":
        this.evaluatedAt = change.at;
        break;
      case "quarantine": {
        const { id, path, reason, raw } = change.rejected;
        const { at, source } = change;
        this.quarantined.push({ body: JSON.stringify({ at, source, event: id, path, reason, raw }) });
        break;
      }
      case "audit":
        this.entries.push(change.entry);
        break;
      case "auditPruned":
        this.prunedThrough = Math.max(this.prunedThrough, change.through);
        break;
    }
  }

  #put(
    kind: BodyTable,
    id: string,
    value: object | string,
    about: Partial<Pick<StoredBody, "event" | "open" | "moment">> = {},
  ): void {
    const body = typeof value === "string" ? value : JSON.stringify(value);
    const stored = column(id) ?? "";
    const mac = macOf(this.#siteKey, kind, stored, body);
    const rest = { event: null, open: false, moment: null, ...about };
    this.forgotten.delete(`${kind}\n${stored}`);
    this.bodies.set(`${kind}\n${stored}`, { kind, id: stored, ...rest, body, mac });
  }

  #forget(kind: BodyTable, id: string): void {
    const stored = column(id) ?? "";
    this.bodies.delete(`${kind}\n${stored}`);
    this.forgotten.set(`${kind}\n${stored}`, { kind, id: stored });
  }
}

/** A row of the record as the table `audit` has it. */
export function storedRow({ cells, facts, hash }: ChainRow): StoredRow {
  const [seq, at, kind, charger, , event, command] = cells;
  return {
    seq,
    at,
    kind,
    charger: column(charger),
    event: column(event),
    command: column(command),
    body: rowText(cells, facts),
    hash,
  };
}

/** Entries in order as rows of the record. */
function rowsAfter(
  start: Head,
  entries: readonly AuditEntry[],
): Pick<Batch, "head" | "rows" | "audit" | "acknowledged"> {
  const rows: AuditRow[] = [];
  const audit: StoredRow[] = [];
  const acknowledged: { charger: string; seq: number }[] = [];
  let head = start;
  for (const { cells, facts, hash, entries: shared, chargers } of nextRows(start, entries)) {
    const [seq] = cells;
    head = { seq, hash };
    audit.push(storedRow({ cells, facts, hash }));
    for (const each of chargers) acknowledged.push({ charger: column(each) ?? "", seq });
    for (const entry of shared) rows.push(numbered(entry, seq, hash));
  }
  return { head, rows, audit, acknowledged };
}

/**
 * One statement is one transaction. It writes nothing unless the epoch is current and no commit was missed: `led` is
 * empty then, and every other part joins it.
 * $1 site, $2 epoch, $3 number of the commit, $4 head, $5 its hash, $6 sealed, $7 evaluated at.
 */
export const COMMIT = `
WITH led AS (
  UPDATE site SET commit_no = $3, head_seq = $4, head_hash = $5, sealed = $6, evaluated_at = coalesce($7, evaluated_at)
  WHERE id = $1 AND epoch = $2 AND commit_no = $3 - 1 RETURNING id
), rows AS (
  INSERT INTO audit SELECT led.id, x.* FROM led, json_to_recordset($8::json) AS x (
    seq bigint, at bigint, kind text, charger text, event text, command text, body text, hash text)
), together AS (
  INSERT INTO acknowledged SELECT led.id, x.* FROM led, json_to_recordset($9::json) AS x (charger text, seq bigint)
  ON CONFLICT DO NOTHING
), bodies AS (
  INSERT INTO body (site, kind, id, event, open, moment, body, mac)
  SELECT led.id, x.* FROM led, json_to_recordset($10::json) AS x (
    kind text, id text, event text, open boolean, moment bigint, body text, mac text)
  ON CONFLICT (site, kind, id) DO UPDATE
  SET event = excluded.event, open = excluded.open, moment = excluded.moment, body = excluded.body, mac = excluded.mac
), forgotten AS (
  DELETE FROM body USING led, json_to_recordset($11::json) AS x (kind text, id text)
  WHERE body.site = led.id AND body.kind = x.kind AND body.id = x.id
), duties AS (
  DELETE FROM body USING led WHERE body.site = led.id AND body.kind = 'duty' AND body.event = ANY ($12::text[])
  AND NOT body.id = ANY ($13::text[])
), quarantined AS (
  INSERT INTO quarantine (site, body) SELECT led.id, x.body FROM led, json_to_recordset($14::json) AS x (body text)
), trimmed AS (
  DELETE FROM quarantine USING led WHERE quarantine.site = led.id AND $15::int > 0 AND quarantine.seq <= (
    SELECT seq FROM quarantine WHERE site = $1 ORDER BY seq DESC OFFSET ${QUARANTINE_ROWS} - $15::int LIMIT 1)
), pruned AS (
  DELETE FROM audit USING led WHERE $16::bigint > 0 AND audit.site = led.id AND audit.seq <= $16::bigint
), unlisted AS (
  DELETE FROM acknowledged USING led
  WHERE $16::bigint > 0 AND acknowledged.site = led.id AND acknowledged.seq <= $16::bigint
), taken AS (
  DELETE FROM delivery USING led WHERE delivery.site = led.id AND delivery.id = ANY ($17::bigint[])
)
SELECT count(*) AS led FROM led`;

/** Values of `COMMIT` from $4 on. */
export const commitValues = (batch: Batch, sealed: string): readonly unknown[] => [
  batch.head.seq,
  batch.head.hash,
  sealed,
  batch.evaluatedAt,
  JSON.stringify(batch.audit),
  JSON.stringify(batch.acknowledged),
  JSON.stringify(batch.bodies),
  JSON.stringify(batch.forgotten),
  batch.noDuties,
  batch.bodies.filter(({ kind }) => kind === "duty").map(({ id }) => id),
  JSON.stringify(batch.quarantined),
  batch.quarantined.length,
  batch.prunedThrough,
  batch.taken,
];
