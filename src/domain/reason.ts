import { type Json, factOf, textOf, type RecordRow, numberOf } from "./audit.ts";
import type { Command, Decision } from "./command.ts";
import { type LevelView, parseLevel, viewOf } from "./setpoint.ts";
import { type EventId, type Windows, isOpenAt } from "./units.ts";

/** Cap on overruled claims per reason. Some partners send a new event per change, which leaves hundreds in force. */
export const MOST_OVERRULED = 5;

/** Reason of a decision. The log, the API, MQTT and reports use this same object. */
export interface Reason {
  /** Sentence for people. */
  readonly words: string;
  readonly cause: Decision["cause"];
  readonly winner: Json;
  /** Best overruled claims, best first, at most `MOST_OVERRULED`. */
  readonly overruled: readonly Json[];
  /** Number of all overruled claims. */
  readonly overruledCount: number;
  /** Limits that reduced the level. */
  readonly limits: readonly Json[];
  readonly hold: Json;
  /** Rule that delays an increase, and until when. Null: none. */
  readonly held: Json;
  readonly occupant: Json;
  /** End of the winner's window, ISO. Null: none. */
  readonly until: string | null;
  readonly [member: string]: Json;
}

/** Extracts the reason from the `facts` of a decision row. Null: the row was not written by this program. */
export function reasonIn(facts: Json): Reason | null {
  const isWhole =
    textOf(facts, "words") !== null &&
    textOf(facts, "cause") !== null &&
    Array.isArray(factOf(facts, "overruled")) &&
    Array.isArray(factOf(facts, "limits"));
  if (!isWhole) return null;
  const { told: _told, ...reason } = facts as Reason;
  const { overruled } = reason;
  // Earlier versions listed all claims and wrote no count.
  const overruledCount = numberOf(facts, "overruledCount") ?? overruled.length;
  return { ...reason, overruled: overruled.slice(0, MOST_OVERRULED), overruledCount };
}

/** The level that stays since the last event ended (`atEnd`). Null: the command is another one. */
export const restOf = (command: Pick<Command, "cause" | "desired"> | undefined): LevelView | null =>
  command?.cause === "ended" && command.desired.kind !== "release" ? viewOf(command.desired) : null;

/** `restOf` for the `facts` of a decision row. */
export function restIn(facts: Json): LevelView | null {
  if (textOf(facts, "cause") !== "ended") return null;
  const level = factOf(facts, "told");
  const isPause = textOf(level, "kind") === "pause";
  return parseLevel(isPause ? "pause" : `${numberOf(level, "value")} ${textOf(level, "unit")}`);
}

/** The winner and the overruled claims of a decision that belong to this event. */
export function claimsOn(event: EventId, facts: Json): readonly Json[] {
  const overruled = factOf(facts, "overruled");
  const claims = [factOf(facts, "winner"), ...(Array.isArray(overruled) ? overruled : [])];
  return claims.filter((claim) => textOf(claim, "event") === event);
}

/**
 * True if the event lost in this decision. A row lists at most `MOST_OVERRULED` losers.
 * Beyond those, an event with an open window for the vehicle counts as overruled.
 */
export function isOverruled(event: EventId, row: RecordRow, windows: Windows): boolean {
  const { facts, vehicle, at } = row;
  if (row.kind !== "decision" || textOf(factOf(facts, "winner"), "event") === event) return false;
  if (claimsOn(event, facts).length > 0) return true;
  const isComplete = (numberOf(facts, "overruledCount") ?? 0) <= MOST_OVERRULED;
  if (isComplete || vehicle === null) return false;
  return windows.get(vehicle)?.some((window) => isOpenAt(window, at)) ?? false;
}
