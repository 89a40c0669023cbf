import type { AuditRow, Readings } from "./apiAnswers.ts";
import { progressState, type Shown } from "./derive.ts";
import { amperesOf } from "./power.ts";
import { t } from "./texts.ts";

/** A command with what became of it, from the rows of the record. */
export interface CommandLine {
  readonly id: string;
  readonly at: string;
  readonly value: string;
  readonly because: string;
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
      return {
        id: row.command ?? "",
        at: row.at,
        value: toldText(told),
        because: row.words,
        outcome: progressState(lastProgress(followed) ?? "planned"),
        acknowledgedMs: sinceOf("acknowledged"),
        acceptedMs: sinceOf("accepted"),
      };
    });
}

/** Progress of the newest row that has one. */
const lastProgress = (outcomes: readonly AuditRow[]): string | undefined =>
  outcomes.map((outcome) => factsOf(outcome).progress).findLast((progress) => progress !== undefined);

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
