import type { Dispatch } from "../control/schedule/expand.ts";
import { entriesIn, factOf, type Json, numberOf, type RecordRow, textOf } from "../domain/audit.ts";
import { claimsOn, isOverruled } from "../domain/reason.ts";
import { levelOnRecord } from "../domain/setpoint.ts";
import {
  type Windows,
  type EventId,
  type Instant,
  iso,
  type Millis,
  millis,
  type Window,
  earlier,
  fromIso,
} from "../domain/units.ts";
import { runToEnd } from "../platform/cooperative.ts";
import type { DataQuality, Finding } from "../reporting/cause.ts";
import { estimatedEnergy, measuredEnergy } from "../reporting/energy.ts";
import {
  baselineOf,
  type Evidence,
  evidenceOf,
  type FillContext,
  type Subject,
} from "../reporting/evidence.ts";
import { gapsIn, mean, peak, within } from "../reporting/series.ts";
import { type Fact, fact, kilo } from "./file.ts";
import { counted } from "../platform/text.ts";

/** Allocation of the event to one vehicle: its window and its start offset. */
export interface VehicleAllocation extends Window {
  readonly offset: Millis;
  readonly spread: Millis;
  /** Setpoint, for example "16 A". */
  readonly asked: string;
  /** Time of a withdrawal or change. `until` is then the spread release. Null: none. */
  readonly cutAt: Instant | null;
}

/** Allocations by the stored event. Without it: those that the decisions in the record were based on. */
export function vehicleAllocations(
  event: EventId,
  dispatches: readonly Dispatch[],
  rows: readonly RecordRow[],
): readonly VehicleAllocation[] {
  if (dispatches.length > 0)
    return dispatches.map(({ from, until, offset, setpoint, cutAt, event: { randomizeStart } }) => ({
      from,
      until,
      offset,
      spread: randomizeStart,
      asked: levelOnRecord(setpoint),
      cutAt,
    }));
  const claims = rows.flatMap(({ facts }) => claimsOn(event, facts).flatMap(allocationIn));
  return [
    ...new Map(
      claims.map((allocation) => [`${allocation.from} ${allocation.until} ${allocation.asked}`, allocation]),
    ).values(),
  ];
}

/** Reads a claim as `domain/reason.ts` writes it. */
function allocationIn(claim: Json): readonly VehicleAllocation[] {
  const [from, until, cutAt] = ["from", "until", "cutAt"].map((name) => momentIn(claim, name));
  const [offset, spread] = [numberOf(claim, "offsetMs"), numberOf(claim, "spreadMs")];
  const asked = textOf(claim, "asked");
  if (!from || !until || offset === null || spread === null || asked === null) return [];
  return [{ from, until, offset: millis(offset), spread: millis(spread), asked, cutAt: cutAt ?? null }];
}

function momentIn(claim: Json, name: string): Instant | null {
  const text = textOf(claim, name);
  return text === null ? null : fromIso(text);
}

export const allocationFacts = (
  vehicle: string,
  allocations: readonly VehicleAllocation[],
): readonly Fact[] =>
  allocations.flatMap(({ from, until, offset, spread, asked, cutAt }) => [
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

/** Entry in the history of a vehicle's commands. */
export interface CommandHistoryEntry {
  readonly what: string;
  /** ISO. */
  readonly at: string;
  readonly row: RecordRow;
}

/**
 * Command history from the rows on an event, in order: decided, sent, acknowledged by the broker, accepted or refused by
 * the charger, followed or not followed as measured, overruled, released, missed.
 */
export const commandHistory = (
  event: EventId,
  rows: readonly RecordRow[],
  windows: Windows,
): readonly CommandHistoryEntry[] =>
  rows.flatMap(entriesIn).flatMap((row) => {
    const what = historyEntryIn(event, row, windows);
    const sentAt = textOf(row.facts, "sentAt");
    return [
      // The row of the acknowledgement has the time of the publish.
      ...(sentAt === null ? [] : [{ what: "sent", at: sentAt, row }]),
      ...(what === null ? [] : [{ what, at: iso(row.at), row }]),
    ];
  });

function historyEntryIn(event: EventId, row: RecordRow, windows: Windows): string | null {
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

/** Terms of the proof for each progress. */
const PROGRESS: Readonly<Record<string, string>> = {
  acknowledged: "acknowledged",
  accepted: "accepted",
  refused: "refused",
  failed: "not sent",
  followed: "followed",
  notFollowed: "not followed",
};

export const historyFacts = (history: readonly CommandHistoryEntry[]): readonly Fact[] =>
  history.map(({ what, at, row: { vehicle, charger, command, words, seq, facts } }) => {
    const desired = factOf(facts, "told");
    return fact("vehicle", what, {
      vehicle,
      charger,
      command,
      // A missed window has times of its own.
      from: textOf(facts, "from") ?? at,
      until: textOf(facts, "until"),
      value: numberOf(desired, "value"),
      unit: textOf(desired, "unit"),
      words: what === "sent" ? null : words,
      seq,
    });
  });

/** Final outcomes of a command. */
const FINAL = ["followed", "not followed", "refused", "not sent"];
/** Outcome where no command has a final one. */
const OTHERWISE = { decided: "decided, not sent", overruled: "overruled", missed: "missed" };

/** Outcome of a vehicle: the last known outcome of its last level. */
export function endOf(history: readonly CommandHistoryEntry[]): string {
  const levels = new Set(history.filter(({ what }) => what === "decided").map(({ row }) => row.command));
  const last = history.findLast(({ row }) => row.kind === "outcome" && levels.has(row.command));
  if (last !== undefined) return FINAL.includes(last.what) ? last.what : "sent, not measured";
  const other = Object.entries(OTHERWISE).find(([what]) => history.some((entry) => entry.what === what));
  return other?.[1] ?? "nothing done";
}

/** Measured facts of a vehicle's window up to now: energy, power, gaps and the baseline. */
export function measuredFacts(
  subject: Subject,
  window: Window,
  now: Instant,
  context: FillContext,
): readonly Fact[] {
  const { vehicle } = subject;
  const past: Window = { from: window.from, until: earlier(window.until, now) };
  if (past.from >= past.until) return [];
  const evidence = evidenceOf(subject, context);
  const { settings, calendar } = context;
  const span = { vehicle, from: iso(past.from), until: iso(past.until) };
  const energy = measuredEnergy(evidence.energy, past, settings.maxGap);
  const drawn = within(evidence.power.steps, past);
  // The event may be shorter than the interval of the readings: then the meter alone shows nothing.
  const around = estimatedEnergy(evidence.energy, evidence.power.steps, past, settings.maxGap);
  const gaps = gapsIn(timesOf(evidence), past, settings.maxGap);
  const usual = runToEnd(baselineOf(evidence, past, calendar, settings));
  const figure = (what: string, value: number | null, unit: string, words: string): Fact =>
    fact("vehicle", what, { ...span, value: value === null ? null : kilo(value), unit, words });
  const covered = gaps.length === 0 ? "complete" : `with ${counted(gaps.length, "gap")}`;
  return [
    figure("energy", energy.value, "kWh", `by the charger's meter: ${judgement(energy)}`),
    ...(energy.quality === COMPLETE || around.value === null
      ? []
      : [
          figure(
            "estimated energy",
            around.value,
            "kWh",
            `by power and by meter readings around it: ${judgement(around)}`,
          ),
        ]),
    figure("mean power", mean(drawn), "kW", drawn.length === 0 ? "no readings" : `over time, ${covered}`),
    figure(
      "peak power",
      peak(drawn),
      "kW",
      drawn.length === 0 ? "no readings" : `of single readings, ${covered}`,
    ),
    ...gaps.map(({ from, until }) =>
      fact("vehicle", "gap", {
        vehicle,
        from: iso(from),
        until: iso(until),
        value: (until - from) / 1000,
        unit: "s",
        words: "no reading",
      }),
    ),
    figure(
      "baseline",
      usual.value,
      "kWh",
      usual.value === null
        ? "no comparable days"
        : `mean of the same hours of ${counted(usual.days, "comparable day")}`,
    ),
  ];
}

/** Times of all readings, in order. */
const timesOf = ({ power, register }: Evidence): readonly Instant[] =>
  [...new Set([...power.times, ...register.times])].toSorted((a, b) => a - b);

const COMPLETE: DataQuality = "OK";
const judgement = ({ quality, causes }: Finding): string =>
  quality === COMPLETE ? "complete" : [quality, causes.join(", ")].filter(Boolean).join(": ");
