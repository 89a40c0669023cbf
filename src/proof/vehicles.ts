import type { Dispatch } from "../control/schedule/expand.ts";
import { factOf, type Json, numberOf, type RecordRow, textOf } from "../domain/audit.ts";
import { claimsOn, isOverruled } from "../domain/reason.ts";
import { formatLevel } from "../domain/setpoint.ts";
import {
  type Windows,
  type EventId,
  type Instant,
  instant,
  iso,
  type Millis,
  millis,
  type Window,
  earlier,
} from "../domain/units.ts";
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

/** A vehicle's share of the event: its window, and how its own random start came about. */
export interface VehicleAllocation extends Window {
  readonly offset: Millis;
  readonly spread: Millis;
  /** "16 A" */
  readonly asked: string;
  /** The event was withdrawn or changed at this moment: `until` is the spread release. */
  readonly cutAt: Instant | null;
}

/** What the stored event gives, or where it gives nothing any more, what the decisions were based on at the time. */
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
      asked: formatLevel(setpoint),
      cutAt,
    }));
  const claims = rows.flatMap(({ facts }) => claimsOn(event, facts).flatMap(allocationIn));
  return [...new Map(claims.map((share) => [`${share.from} ${share.until} ${share.asked}`, share])).values()];
}

/** As reason.ts writes it. */
function allocationIn(claim: Json): readonly VehicleAllocation[] {
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

export const allocationFacts = (vehicle: string, shares: readonly VehicleAllocation[]): readonly Fact[] =>
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

/** One thing that was done with a vehicle because of the event, or in the place of it. */
export interface CommandHistoryEntry {
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
export const commandHistory = (
  event: EventId,
  rows: readonly RecordRow[],
  windows: Windows,
): readonly CommandHistoryEntry[] =>
  rows.flatMap((row) => {
    const what = historyEntryIn(event, row, windows);
    const sentAt = textOf(row.facts, "sentAt");
    return [
      // When it left is known, and written, once the broker has it.
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

/** In the words of a proof. */
const PROGRESS: Readonly<Record<string, string>> = {
  acknowledged: "acknowledged",
  accepted: "accepted",
  refused: "refused",
  failed: "not sent",
  followed: "followed",
  notFollowed: "not followed",
};

export const historyFacts = (deeds: readonly CommandHistoryEntry[]): readonly Fact[] =>
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
export function endOf(deeds: readonly CommandHistoryEntry[]): string {
  const levels = new Set(deeds.filter(({ what }) => what === "decided").map(({ row }) => row.command));
  const last = deeds.findLast(({ row }) => row.kind === "outcome" && levels.has(row.command));
  if (last !== undefined) return FINAL.includes(last.what) ? last.what : "sent, not measured";
  const other = Object.entries(OTHERWISE).find(([what]) => deeds.some((deed) => deed.what === what));
  return other?.[1] ?? "nothing done";
}

/** What the meters say of a vehicle's window up to now: energy, power, where readings are missing, and the baseline. */
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
  // Of an event shorter than the pause between two readings the meter alone says nothing.
  const around = estimatedEnergy(evidence.energy, evidence.power.steps, past, settings.maxGap);
  const gaps = gapsIn(timesOf(evidence), past, settings.maxGap);
  const usual = baselineOf(evidence, past, calendar, settings);
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

/** When anything was measured of it, in order. */
const timesOf = ({ power, register }: Evidence): readonly Instant[] =>
  [...new Set([...power.times, ...register.times])].toSorted((a, b) => a - b);

const COMPLETE: DataQuality = "OK";
const judgement = ({ quality, causes }: Finding): string =>
  quality === COMPLETE ? "complete" : [quality, causes.join(", ")].filter(Boolean).join(": ");

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
