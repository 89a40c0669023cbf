import type { AuditRow, BrokerTrials, Readings } from "./apiAnswers.ts";
import { progressState, type Shown } from "./derive.ts";
import { amperesOf } from "./power.ts";
import { t } from "./texts.ts";

/** A command with what became of it, from the rows of the record. */
export interface CommandLine {
  readonly id: string;
  readonly at: string;
  readonly value: string;
  readonly because: string;
  /** Its last step on record. */
  readonly progress: string;
  readonly outcome: Shown;
  /** Ms from the decision to the broker's acknowledgement, and to the charger's answer. Null: not yet. */
  readonly acknowledgedMs: number | null;
  readonly acceptedMs: number | null;
}

interface Facts {
  readonly told?: { readonly kind: string; readonly value: number | null; readonly unit: string | null };
  readonly progress?: string;
  readonly ms?: number;
  readonly winner?: { readonly asked?: string } | null;
  readonly observed?: boolean;
}

const factsOf = ({ facts }: AuditRow): Facts => (typeof facts === "object" && facts !== null ? facts : {});

/** Commands of one charger, the newest first. `rows`: in any order. */
export function commandsIn(rows: readonly AuditRow[]): readonly CommandLine[] {
  const outcomes = new Map<string, AuditRow[]>();
  for (const row of rows)
    if (row.kind === "outcome" && row.command !== null) {
      const list = outcomes.get(row.command) ?? [];
      list.push(row);
      outcomes.set(row.command, list);
    }
  return rows
    .filter(({ kind, command }) => kind === "decision" && command !== null)
    .toSorted((a, b) => b.seq - a.seq)
    .map((row): CommandLine => {
      const followed = (outcomes.get(row.command ?? "") ?? []).toSorted((a, b) => a.seq - b.seq);
      const sinceOf = (progress: string): number | null => {
        const found = followed.find((outcome) => factsOf(outcome).progress === progress);
        return found === undefined
          ? null
          : (factsOf(found).ms ?? Math.max(0, Date.parse(found.at) - Date.parse(row.at)));
      };
      const { told } = factsOf(row);
      const progress = lastProgress(followed) ?? (isOnlyObserved(row) ? "observed" : "planned");
      return {
        id: row.command ?? "",
        at: row.at,
        value: toldText(told),
        because: row.words,
        progress,
        outcome: progressState(progress),
        acknowledgedMs: sinceOf("acknowledged"),
        acceptedMs: sinceOf("accepted"),
      };
    });
}

/** A decision of a site that only observes: on record, and not sent. */
export const isOnlyObserved = (row: AuditRow): boolean => factsOf(row).observed === true;

/** Progress of the newest row that has one. A repeat that could not be sent takes nothing back. */
function lastProgress(outcomes: readonly AuditRow[]): string | undefined {
  const steps = outcomes.flatMap((outcome) => factsOf(outcome).progress ?? []);
  return steps.findLast((progress) => progress !== "failed") ?? steps.at(-1);
}

function toldText(told: Facts["told"]): string {
  if (told === undefined) return "";
  if (told.kind === "release") return t.level.release;
  if (told.kind === "pause") return t.level.pause;
  return told.unit === "W" ? `${((told.value ?? 0) / 1000).toFixed(1)} kW` : `${told.value} ${told.unit}`;
}

/** A level from a moment on. Null: none. */
export type Step = readonly [number, number | null];

const MINUTE = 60_000;
const DAY = 86_400_000;

/** The shortest span, in minutes, that shows every reading. */
export function spanOf(readings: Readings | null): number {
  const longest = t.vehicle.spans.at(-1)?.[1] ?? 0;
  if (readings === null) return longest;
  const first = (readings.current[0] ?? readings.power[0])?.[0] ?? Date.parse(readings.from);
  const age = (Date.parse(readings.until) - first) / MINUTE;
  return t.vehicle.spans.find(([, length]) => age < length)?.[1] ?? longest;
}

/** Levels that events asked for, in A per phase, from the decisions of the record. */
export function askedSteps(rows: readonly AuditRow[], from: number, perAmpere: number): readonly Step[] {
  return rows
    .filter(({ kind, at }) => kind === "decision" && Date.parse(at) >= from - DAY)
    .toSorted((a, b) => a.seq - b.seq)
    .map((row): Step => {
      const [, value, unit] = /^(-?[\d.]+) ([AW])/.exec(factsOf(row).winner?.asked ?? "") ?? [];
      if (value === undefined) return [Date.parse(row.at), null];
      return [
        Date.parse(row.at),
        amperesOf(unit === "W" ? { powerW: Number(value) } : { currentA: Number(value) }, perAmpere),
      ];
    });
}

/** Half of the values are at most `median`, 95 of 100 at most `p95`. In ms. */
export interface Delays {
  readonly median: number;
  readonly p95: number;
}

/** A trial of a charger, as the record has it. */
export interface Trial {
  readonly at: string;
  /** Levels that were asked, each with its effect. */
  readonly levels: readonly { readonly asked: string; readonly isGood: boolean }[];
  /** True: each level took effect, and the prior state was restored. */
  readonly isGood: boolean;
  /** Behaviour without messages. Null: not tried. */
  readonly silence: {
    readonly seen: string;
    readonly afterMs: number;
    /** Null: it could not be measured. */
    readonly isGood: boolean | null;
  } | null;
  /** Result as a sentence. */
  readonly words: string;
}

/** Facts of the record about one charger. */
export interface ChargerFigures {
  readonly commands: number;
  readonly inHour: number;
  /** From the decision to the broker, and to the charger's answer. Null: none. */
  readonly acknowledged: Delays | null;
  readonly accepted: Delays | null;
  readonly followed: number;
  /** Commands with a result: followed, not followed or refused at last. */
  readonly judged: number;
  /** Times it went offline or silent. */
  readonly outages: number;
  /** The newest trial. Null: none in these rows. */
  readonly trial: Trial | null;
}

const HOUR = 3_600_000;

/** Figures of each charger that the rows are about. `rows`: in any order. */
export function figuresIn(rows: readonly AuditRow[], now: number): ReadonlyMap<string, ChargerFigures> {
  const ofCharger = Map.groupBy(
    rows.filter(({ charger }) => charger !== null),
    ({ charger }) => charger ?? "",
  );
  return new Map([...ofCharger].map(([charger, own]) => [charger, chargerFigures(own, now)]));
}

function chargerFigures(rows: readonly AuditRow[], now: number): ChargerFigures {
  const lines = commandsIn(rows);
  const countOf = (progress: string): number => lines.filter((line) => line.progress === progress).length;
  const followed = countOf("followed");
  return {
    commands: lines.length,
    inHour: lines.filter(({ at }) => Date.parse(at) > now - HOUR).length,
    acknowledged: delaysOf(lines.map(({ acknowledgedMs }) => acknowledgedMs)),
    accepted: delaysOf(lines.map(({ acceptedMs }) => acceptedMs)),
    followed,
    judged: followed + countOf("notFollowed") + countOf("refused"),
    outages: rows.filter((row) => isBeginOf(row, "charger")).length,
    trial: trialIn(rows),
  };
}

function delaysOf(values: readonly (number | null)[]): Delays | null {
  const known = values.filter((value) => value !== null).toSorted((a, b) => a - b);
  const at = (share: number): number => known[Math.ceil(share * known.length) - 1] ?? 0;
  return known.length === 0 ? null : { median: at(0.5), p95: at(0.95) };
}

interface OutageFacts {
  readonly outage?: string;
  readonly over?: boolean;
}

const outageOf = ({ kind, facts }: AuditRow): OutageFacts =>
  kind === "silence" && typeof facts === "object" && facts !== null ? facts : {};

const isBeginOf = (row: AuditRow, who: string): boolean => {
  const { outage, over } = outageOf(row);
  return outage === who && over !== true;
};

/** Outages of the broker in these rows, and the end of the last one. Null: none has ended. */
export function brokerOutages(rows: readonly AuditRow[]): {
  readonly count: number;
  readonly lastEnd: string | null;
} {
  const ends = rows.filter((row) => outageOf(row).outage === "broker" && outageOf(row).over === true);
  return {
    count: rows.filter((row) => isBeginOf(row, "broker")).length,
    lastEnd: ends.toSorted((a, b) => b.seq - a.seq)[0]?.at ?? null,
  };
}

interface TrialFacts {
  readonly steps?: readonly {
    readonly asked: string;
    readonly failure: string | null;
    readonly confirmedAfterMs: number | null;
    readonly refusal: string | null;
    readonly effect: string;
  }[];
  readonly silence?: {
    readonly promised: string;
    readonly seen: string;
    readonly seenAfterMs: number | null;
    readonly afterMs: number;
  } | null;
  readonly cut?: boolean;
  readonly leftFailure?: string | null;
}

/** By the rules of the trial itself: a level that cannot be measured is no failure, if another was visible. */
function trialIn(rows: readonly AuditRow[]): Trial | null {
  const row = rows
    .filter(({ kind, facts }) => kind === "operator" && Array.isArray((facts as TrialFacts | null)?.steps))
    .toSorted((a, b) => b.seq - a.seq)[0];
  if (row === undefined) return null;
  const { steps = [], silence = null, cut, leftFailure } = row.facts as TrialFacts;
  const levels = steps.map(({ asked, failure, refusal, effect }) => ({
    asked,
    isGood: failure === null && refusal === null && effect !== "notFollowed",
  }));
  const isVisible = steps.some(
    ({ confirmedAfterMs, effect }) => confirmedAfterMs !== null || effect === "followed",
  );
  return {
    at: row.at,
    words: row.words,
    levels,
    isGood: cut !== true && leftFailure == null && isVisible && levels.every(({ isGood }) => isGood),
    silence:
      silence === null
        ? null
        : {
            seen: silence.seen,
            afterMs: silence.seenAfterMs ?? silence.afterMs,
            isGood: silence.seen === "unmeasured" ? null : silence.seen === silence.promised,
          },
  };
}

/** The newest trial of the brokers in these rows. Null: none. */
export function brokerTrialIn(rows: readonly AuditRow[]): BrokerTrials | null {
  const row = rows
    .filter(
      ({ kind, facts }) =>
        kind === "operator" && Array.isArray((facts as Partial<BrokerTrials> | null)?.brokers),
    )
    .toSorted((a, b) => b.seq - a.seq)[0];
  return row === undefined ? null : { ...(row.facts as Omit<BrokerTrials, "at">), at: row.at };
}
