import { after, type Instant, type Millis, millis, type Window } from "../units.ts";
import { type Finding, nothing } from "./cause.ts";
import { measuredEnergy } from "./energy.ts";
import type { Evidence } from "./evidence.ts";
import { within } from "./series.ts";
import type { ReportSettings } from "./settings.ts";

/** The same time of day that many days earlier in the site's zone, and that day's weekday: 1 is Monday. */
export type Calendar = (at: Instant, days: number) => { readonly at: Instant; readonly weekday: number };

/** A mean over past days, and over how many. */
export interface Baseline extends Finding<number> {
  readonly days: number;
}

/** Days looked back for comparable ones. */
const LOOK_BACK = 45;
const DAY = 24 * 3_600_000;

/** The same window on earlier days of the same class (working day or weekend), newest first; none overlaps with it. */
export function comparableDays(window: Window, calendar: Calendar): readonly Window[] {
  const length: Millis = millis(window.until - window.from);
  const today = calendar(window.from, 0);
  const days: Window[] = [];
  for (let back = Math.ceil(length / DAY); back <= LOOK_BACK; back += 1) {
    const day = calendar(window.from, back);
    if (isWeekend(day.weekday) === isWeekend(today.weekday))
      days.push({ from: day.at, until: after(day.at, length) });
  }
  return days;
}

const isWeekend = (weekday: number): boolean => weekday > 5;

/**
 * Wh that the vehicle used in the same window on its last comparable days. Days on which it was held back in that
 * window, and days without complete readings, do not count: they say nothing of what it would have used.
 */
export function baselineOf(
  evidence: Evidence,
  window: Window,
  calendar: Calendar,
  { baselineDays, maxGap }: Pick<ReportSettings, "baselineDays" | "maxGap">,
): Baseline {
  const used: number[] = [];
  for (const day of comparableDays(window, calendar)) {
    if (used.length >= baselineDays) break;
    if (within(evidence.commanded, day).some(({ value }) => value.kind !== "release")) continue;
    const { value, quality } = measuredEnergy(evidence.energy, day, maxGap);
    if (value !== null && quality === "OK") used.push(value);
  }
  if (used.length === 0) return { ...nothing("no comparable days"), days: 0 };
  const value = used.reduce((sum, wattHours) => sum + wattHours) / used.length;
  return { value, quality: "OK", causes: [], days: used.length };
}
