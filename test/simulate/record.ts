import type { Json, AuditRow } from "../../src/domain/audit.ts";
import { type Command, commandId } from "../../src/domain/command.ts";
import type { ChargerId } from "../../src/domain/units.ts";
import { DAY } from "./plan.ts";

/** What was found on disk since midnight, over all runs of the daemon. */
export class SeenRecord {
  /** Chargers for which a level or a pause was ever decided. */
  readonly limited = new Set<ChargerId>();
  /** Revisions of each event that were taken in, ms since the epoch. */
  readonly accepted = new Map<string, Set<number>>();
  /** "12:00:00.000 v1 missed event E1, ...", by the gateway's clock, in order. */
  readonly missed: string[] = [];
  /** "09:00:30 bay-01": each charger that still does not follow after the last try, by the gateway's clock, in order. */
  readonly alarms: string[] = [];
  /** A window that is said to be missed after it was, or once more; null: none. */
  wrong: string | null = null;
  readonly #decisions = new Map<string, AuditRow>();
  /** Windows that were acted on, or said to be missed. */
  readonly #accounted = new Set<string>();
  /** When each event was last withdrawn, ms since the epoch. */
  readonly #withdrawnAt = new Map<string, number>();
  /** When those began that were acted on, ms since the epoch. */
  readonly #actedFrom = new Map<string, number>();
  /** When those began that were said to be missed, ms since the epoch. */
  readonly #missedFrom = new Map<string, number>();
  /** Windows that were acted on, or said to be missed, by a clock that was ahead, and lay ahead again once it was set back. */
  readonly #aheadAgain = new Set<string>();
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
      else if (row.kind === "outcome") this.#cameTo(row);
      else if (row.kind === "daemon") this.#heardOfItself(row);
    }
  }

  /**
   * Only the run that saw the clock go back knows what it had acted on, or said to be missed, before. For the next one a
   * window that lay ahead again is a window like any other: it may well say so once more, but never nothing.
   */
  #heardOfItself({ at, words, facts }: AuditRow): void {
    const jump = memberOf(facts, "jumpMs");
    if (typeof jump === "number" && jump < 0) {
      for (const [key, from] of this.#missedFrom) if (from > at) this.#aheadAgain.add(key);
      // A clock at 1970 was not ahead before.
      for (const [key, from] of this.#actedFrom) if (from > at && from <= at + DAY) this.#aheadAgain.add(key);
      // A withdrawal by a clock that was ahead counts as of now, as in the program.
      for (const [event, when] of this.#withdrawnAt)
        if (when > at && when <= at + DAY) this.#withdrawnAt.set(event, at);
    }
    if (!words.startsWith("setpointd started")) return;
    for (const key of this.#aheadAgain) this.#accounted.delete(key);
    this.#aheadAgain.clear();
  }

  #cameTo({ at, charger, facts }: AuditRow): void {
    if (memberOf(facts, "alarm") !== true) return;
    this.alarms.push(`${new Date(at).toISOString().slice(11, 19)} ${charger}`);
  }

  #taken({ at, event, facts }: AuditRow): void {
    const revision = memberOf(facts, "revision");
    if (event !== null && memberOf(facts, "outcome") === "withdrawn") this.#withdrawnAt.set(event, at);
    if (event === null || typeof revision !== "string") return;
    const known = this.accepted.get(event) ?? new Set();
    this.accepted.set(event, known.add(Date.parse(revision)));
  }

  #decided(row: AuditRow): void {
    if (row.command === null || row.charger === null) return;
    this.#decisions.set(row.command, row);
    const winner = memberOf(row.facts, "winner") ?? null;
    const told = memberOf(memberOf(row.facts, "told"), "kind");
    if (told !== undefined && told !== "release") this.limited.add(row.charger);
    if (winner === null) return;
    this.limited.add(row.charger);
    const key = windowOf(row, winner);
    const from = memberOf(winner, "from");
    if (typeof from === "string") this.#actedFrom.set(key, Date.parse(from));
    this.#accounted.add(key);
    this.#aheadAgain.delete(key);
  }

  /** That a vehicle is nowhere is said at a moment of the window, and is no word on the rest of it. */
  #missed(row: AuditRow): void {
    this.missed.push(`${new Date(row.at).toISOString().slice(11, 23)} ${row.words}`);
    if (!row.words.includes(" missed event ")) return;
    const start = memberOf(row.facts, "from");
    const from = typeof start === "string" ? Date.parse(start) : Number.NaN;
    const key = windowOf(row, row.facts);
    // A window of an event that was withdrawn and came back is missed from its return on, whatever was before.
    const isAnew = from >= (this.#withdrawnAt.get(row.event ?? "") ?? Infinity);
    if (this.#accounted.has(key) && !isAnew) this.wrong ??= row.words;
    this.#accounted.add(key);
    this.#missedFrom.set(key, from);
  }
}

/**
 * A window by its end and offset. Not by its start: a missed one starts with the receipt of its revision where that came
 * later.
 */
const windowOf = ({ event, vehicle }: AuditRow, span: Json): string =>
  JSON.stringify([event, vehicle, memberOf(span, "until") ?? null, memberOf(span, "offsetMs") ?? null]);

/** A member of an object of the record. */
export const memberOf = (json: Json | undefined, name: string): Json | undefined =>
  typeof json === "object" && json !== null
    ? Object.entries(json).find(([key]) => key === name)?.[1]
    : undefined;
