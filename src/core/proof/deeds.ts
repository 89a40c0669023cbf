import { factOf, numberOf, type RecordRow, textOf } from "../audit.ts";
import { type EventId, iso } from "../units.ts";
import { type Fact, fact } from "./fact.ts";
import { isOverruled, type Windows } from "./share.ts";

/** One thing that was done with a vehicle because of the event, or in the place of it. */
export interface Deed {
  readonly what: string;
  /** ISO. */
  readonly at: string;
  readonly row: RecordRow;
}

/**
 * Of the rows on an event, in order: decided (committed before it is sent), sent, acknowledged by the broker, accepted or
 * refused by the charger, followed or not followed as measured, overruled or taken over by another event, released,
 * missed.
 */
export const deedsOf = (event: EventId, rows: readonly RecordRow[], windows: Windows): readonly Deed[] =>
  rows.flatMap((row) => {
    const what = deedIn(event, row, windows);
    const sentAt = textOf(row.facts, "sentAt");
    return [
      // When it left is known, and written, once the broker has it.
      ...(sentAt === null ? [] : [{ what: "sent", at: sentAt, row }]),
      ...(what === null ? [] : [{ what, at: iso(row.at), row }]),
    ];
  });

function deedIn(event: EventId, row: RecordRow, windows: Windows): string | null {
  const { kind, facts } = row;
  switch (kind) {
    case "decision":
      if (isOverruled(event, row, windows)) return "overruled";
      if (row.event !== event) return "taken over";
      return textOf(factOf(facts, "told"), "kind") === "release" ? "released" : "decided";
    case "outcome":
      return (
        PROGRESS[textOf(facts, "progress") ?? (factOf(facts, "sent") === true ? "acknowledged" : "failed")] ??
        null
      );
    case "missed":
      return "missed";
    case "daemon":
    case "event":
    case "rejected":
    case "silence":
    case "prices":
    case "operator":
    case "report":
    case "checkpoint":
      return null;
  }
}

/** In the words of a proof. */
const PROGRESS: Readonly<Record<string, string>> = {
  acknowledged: "acknowledged",
  accepted: "accepted",
  refused: "refused",
  failed: "not sent",
  followed: "followed",
  notFollowed: "not followed",
};

export const deedFacts = (deeds: readonly Deed[]): readonly Fact[] =>
  deeds.map(({ what, at, row: { vehicle, charger, command, words, seq, facts } }) => {
    const told = factOf(facts, "told");
    return fact("vehicle", what, {
      vehicle,
      charger,
      command,
      // A missed window has its own times.
      from: textOf(facts, "from") ?? at,
      until: textOf(facts, "until"),
      value: numberOf(told, "value"),
      unit: textOf(told, "unit"),
      words: what === "sent" ? null : words,
      seq,
    });
  });

/** What a command came to in the end. */
const FINAL = ["followed", "not followed", "refused", "not sent"];
/** Where no command came to anything. */
const OTHERWISE = { decided: "decided, not sent", overruled: "overruled", missed: "missed" };

/** One word for what became of a vehicle: the last thing that is known of its last level. */
export function endOf(deeds: readonly Deed[]): string {
  const levels = new Set(deeds.filter(({ what }) => what === "decided").map(({ row }) => row.command));
  const last = deeds.findLast(({ row }) => row.kind === "outcome" && levels.has(row.command));
  if (last !== undefined) return FINAL.includes(last.what) ? last.what : "sent, not measured";
  const other = Object.entries(OTHERWISE).find(([what]) => deeds.some((deed) => deed.what === what));
  return other?.[1] ?? "nothing done";
}
