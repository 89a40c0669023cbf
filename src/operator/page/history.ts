import { amperesOf, type Step } from "./chart.tsx";
import type { Readings, AuditRow } from "./apiAnswers.ts";
import { factsOf } from "./commands.ts";
import { t } from "./texts.ts";

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

/** Levels that events asked for, from the decisions of the record. */
export function askedSteps(rows: readonly AuditRow[], from: number): readonly Step[] {
  return rows
    .filter(({ kind, at }) => kind === "decision" && Date.parse(at) >= from - DAY)
    .toSorted((a, b) => a.seq - b.seq)
    .map((row): Step => {
      const [, value, unit] = /^(-?[\d.]+) ([AW])/.exec(factsOf(row).winner?.asked ?? "") ?? [];
      if (value === undefined) return [Date.parse(row.at), null];
      return [
        Date.parse(row.at),
        amperesOf(unit === "W" ? { powerW: Number(value) } : { currentA: Number(value) }),
      ];
    });
}
