import { factOf, type Json, numberOf, type RecordRow, textOf } from "../audit.ts";
import { MOST_OVERRULED } from "../control/arbitrate.ts";
import type { Dispatch } from "../control/expand.ts";
import { inWords } from "../control/setpoint.ts";
import {
  type EventId,
  holdsAt,
  type Instant,
  instant,
  iso,
  type Millis,
  millis,
  type VehicleId,
  type Window,
} from "../units.ts";
import { type Fact, fact } from "./fact.ts";

/** A vehicle's share of the event: its window, and how its own random start came about. */
export interface Share extends Window {
  readonly offset: Millis;
  readonly spread: Millis;
  /** "16 A" */
  readonly asked: string;
  /** The event was withdrawn or changed at this moment: `until` is the spread release. */
  readonly cutAt: Instant | null;
}

/** What the stored event gives, or where it gives nothing any more, what the decisions were based on at the time. */
export function sharesOf(
  event: EventId,
  dispatches: readonly Dispatch[],
  rows: readonly RecordRow[],
): readonly Share[] {
  if (dispatches.length > 0)
    return dispatches.map(({ from, until, offset, setpoint, cutAt, event: { randomizeStart } }) => ({
      from,
      until,
      offset,
      spread: randomizeStart,
      asked: inWords(setpoint),
      cutAt,
    }));
  const claims = rows.flatMap(({ facts }) => claimsOn(event, facts).flatMap(shareIn));
  return [...new Map(claims.map((share) => [`${share.from} ${share.until} ${share.asked}`, share])).values()];
}

/** Of a decision: its winner and whom that overruled, as far as they are this event's (reason.ts). */
function claimsOn(event: EventId, facts: Json): readonly Json[] {
  const overruled = factOf(facts, "overruled");
  const claims = [factOf(facts, "winner"), ...(Array.isArray(overruled) ? overruled : [])];
  return claims.filter((claim) => textOf(claim, "event") === event);
}

/** When the event asks something of each of our vehicles. */
export type Windows = ReadonlyMap<VehicleId, readonly Window[]>;

/** A row names the best five that lost. Beyond those, the event is one of the rest while it holds for the vehicle. */
export function isOverruled(event: EventId, row: RecordRow, windows: Windows): boolean {
  const { facts, vehicle, at } = row;
  if (row.kind !== "decision" || textOf(factOf(facts, "winner"), "event") === event) return false;
  if (claimsOn(event, facts).length > 0) return true;
  const isComplete = (numberOf(facts, "overruledCount") ?? 0) <= MOST_OVERRULED;
  if (isComplete || vehicle === null) return false;
  return windows.get(vehicle)?.some((window) => holdsAt(window, at)) ?? false;
}

/** As reason.ts writes it. */
function shareIn(claim: Json): readonly Share[] {
  const [from, until, cutAt] = ["from", "until", "cutAt"].map((name) => momentIn(claim, name));
  const [offset, spread] = [numberOf(claim, "offsetMs"), numberOf(claim, "spreadMs")];
  const asked = textOf(claim, "asked");
  if (!from || !until || offset === null || spread === null || asked === null) return [];
  return [{ from, until, offset: millis(offset), spread: millis(spread), asked, cutAt: cutAt ?? null }];
}

function momentIn(claim: Json, name: string): Instant | null {
  const text = textOf(claim, name);
  return text === null ? null : instant(Date.parse(text));
}

export const shareFacts = (vehicle: string, shares: readonly Share[]): readonly Fact[] =>
  shares.flatMap(({ from, until, offset, spread, asked, cutAt }) => [
    fact("vehicle", "random start offset", {
      vehicle,
      value: offset / 1000,
      unit: "s",
      words: `of at most ${spread / 1000} s, derived from event, vehicle and the site's key`,
    }),
    fact("vehicle", "window", {
      vehicle,
      from: iso(from),
      until: iso(until),
      words: cutAt === null ? asked : `${asked}; the event was withdrawn or changed at ${iso(cutAt)}`,
    }),
  ]);
