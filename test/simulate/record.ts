import type { Json } from "../../src/core/audit.ts";
import { type Command, commandId } from "../../src/core/control/command.ts";
import type { ChargerId } from "../../src/core/units.ts";
import type { AuditRow } from "../../src/store/rows.ts";

/** What was found on disk since midnight, over all runs of the daemon. */
export class SeenRecord {
  /** Chargers for which a level or a pause was ever decided. */
  readonly limited = new Set<ChargerId>();
  /** Revisions of each event that were taken in, ms since the epoch. */
  readonly accepted = new Map<string, Set<number>>();
  /** "12:00:00.000 v1 missed event E1, ...", by the gateway's clock, in order. */
  readonly missed: string[] = [];
  /** A window that is said to be missed after it was, or once more; null: none. */
  wrong: string | null = null;
  readonly #decisions = new Map<string, AuditRow>();
  /** Windows that were acted on, or said to be missed. */
  readonly #accounted = new Set<string>();
  readonly #rowsAfter: (seq: number) => readonly AuditRow[];
  #lastSeq = 0;

  constructor(rowsAfter: (seq: number) => readonly AuditRow[]) {
    this.#rowsAfter = rowsAfter;
  }

  /** The row of a decision, if it is on disk by now. */
  decisionOf(command: Command): AuditRow | undefined {
    const id = commandId(command);
    if (!this.#decisions.has(id)) this.read();
    return this.#decisions.get(id);
  }

  read(): void {
    for (const row of this.#rowsAfter(this.#lastSeq)) {
      this.#lastSeq = row.seq;
      if (row.kind === "event") this.#taken(row);
      else if (row.kind === "decision") this.#decided(row);
      else if (row.kind === "missed") this.#missed(row);
    }
  }

  #taken({ event, facts }: AuditRow): void {
    const revision = memberOf(facts, "revision");
    if (event === null || typeof revision !== "string") return;
    const known = this.accepted.get(event) ?? new Set();
    this.accepted.set(event, known.add(Date.parse(revision)));
  }

  #decided(row: AuditRow): void {
    if (row.command === null || row.charger === null) return;
    this.#decisions.set(row.command, row);
    const winner = memberOf(row.facts, "winner") ?? null;
    if (winner === null) return;
    this.limited.add(row.charger);
    this.#accounted.add(windowOf(row, winner));
  }

  /** That a vehicle is nowhere is said at a moment of the window, and is no word on the rest of it. */
  #missed(row: AuditRow): void {
    this.missed.push(`${new Date(row.at).toISOString().slice(11, 23)} ${row.words}`);
    if (!row.words.includes(" missed event ")) return;
    const key = windowOf(row, row.facts);
    if (this.#accounted.has(key)) this.wrong ??= row.words;
    this.#accounted.add(key);
  }
}

const windowOf = ({ event, vehicle }: AuditRow, span: Json): string =>
  JSON.stringify([event, vehicle, memberOf(span, "from") ?? null, memberOf(span, "until") ?? null]);

/** A member of an object of the record. */
export const memberOf = (json: Json | undefined, name: string): Json | undefined =>
  typeof json === "object" && json !== null
    ? Object.entries(json).find(([key]) => key === name)?.[1]
    : undefined;
