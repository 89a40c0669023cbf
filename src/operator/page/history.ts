import type { Readings, AuditRow } from "./apiAnswers.ts";
import { factsOf } from "./commands.ts";
import { amperesOf } from "./power.ts";
import { t } from "./texts.ts";

/** A level from a moment on. Null: none. */
export type Step = readonly [number, number | null];

const words = t.vehicle;
const MINUTE = 60_000;
const DAY = 86_400_000;

/** The shortest span, in minutes, that shows every reading. */
export function spanOf(readings: Readings | null): number {
  const longest = words.spans.at(-1)?.[1] ?? 0;
  if (readings === null) return longest;
  const first = (readings.current[0] ?? readings.power[0])?.[0] ?? Date.parse(readings.from);
  const age = (Date.parse(readings.until) - first) / MINUTE;
  return words.spans.find(([, length]) => age < length)?.[1] ?? longest;
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
