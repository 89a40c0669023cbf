import { type Json, factOf, textOf, type RecordRow, numberOf } from "./audit.ts";
import type { Decision } from "./command.ts";
import { type EventId, type Windows, holdsAt } from "./units.ts";

/** A partner that makes a new event for each change leaves hundreds in force: a reason names so many that lost. */
export const MOST_OVERRULED = 5;

/** Why a charger is told what it is told; the same object reaches log, API, MQTT and report. */
export interface Reason {
  /** One sentence for people. */
  readonly words: string;
  readonly cause: Decision["cause"];
  readonly winner: Json;
  /** The best that lost, best first: never more than five. */
  readonly overruled: readonly Json[];
  /** How many lost, those that are not named included. */
  readonly overruledCount: number;
  /** Every limit that bit. */
  readonly limits: readonly Json[];
  readonly hold: Json;
  /** What holds an increase back, and until when; null: nothing. */
  readonly held: Json;
  readonly occupant: Json;
  /** ISO; the winner's own window end. */
  readonly until: string | null;
  readonly [member: string]: Json;
}

/** The reason that the row of a decision carries, beside what was told. Null: the row is not one as it was written. */
export function reasonIn(facts: Json): Reason | null {
  const isWhole =
    textOf(facts, "words") !== null &&
    textOf(facts, "cause") !== null &&
    Array.isArray(factOf(facts, "overruled")) &&
    Array.isArray(factOf(facts, "limits"));
  if (!isWhole) return null;
  const { told: _told, ...reason } = facts as Reason;
  const { overruled } = reason;
  // Earlier versions named all of them, and wrote no count.
  const overruledCount = numberOf(facts, "overruledCount") ?? overruled.length;
  return { ...reason, overruled: overruled.slice(0, MOST_OVERRULED), overruledCount };
}

/** Of a decision: its winner and whom that overruled, as far as they are this event's (reason.ts). */
export function claimsOn(event: EventId, facts: Json): readonly Json[] {
  const overruled = factOf(facts, "overruled");
  const claims = [factOf(facts, "winner"), ...(Array.isArray(overruled) ? overruled : [])];
  return claims.filter((claim) => textOf(claim, "event") === event);
}

/** A row names the best five that lost. Beyond those, the event is one of the rest while it holds for the vehicle. */
export function isOverruled(event: EventId, row: RecordRow, windows: Windows): boolean {
  const { facts, vehicle, at } = row;
  if (row.kind !== "decision" || textOf(factOf(facts, "winner"), "event") === event) return false;
  if (claimsOn(event, facts).length > 0) return true;
  const isComplete = (numberOf(facts, "overruledCount") ?? 0) <= MOST_OVERRULED;
  if (isComplete || vehicle === null) return false;
  return windows.get(vehicle)?.some((window) => holdsAt(window, at)) ?? false;
}
