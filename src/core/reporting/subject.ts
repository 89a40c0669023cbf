import type { CoordinationEvent } from "../control/event.ts";
import type { ControlSettings } from "../control/settings.ts";
import type { Vehicle } from "../site/vehicle.ts";
import { after, instant, later, type Millis, vehicleId, type VehicleId, type Window } from "../units.ts";
import { type Calendar, comparableDays } from "./baseline.ts";
import type { ReportWindow } from "./plan.ts";
import { spanOf } from "./report.ts";

interface Fleet {
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: Pick<ControlSettings, "untargeted" | "vehicleTargetTypes">;
}

/**
 * Every distinct vehicle that a report is about, ours or not: a report says so of one that is not known here
 * (openadr3 11). The targets of a descriptor are those of its event (partner-interface 2.2).
 */
export function reportedVehicles(
  { targets }: Pick<CoordinationEvent, "targets">,
  { vehicles, settings }: Fleet,
): readonly VehicleId[] {
  if (targets.length === 0) return settings.untargeted === "all" ? [...vehicles.keys()] : [];
  const named = targets
    .filter(({ type }) => settings.vehicleTargetTypes.includes(type.toLowerCase()))
    .flatMap(({ values }) => values.map(vehicleId));
  return [...new Set(named)];
}

/** The times of which readings are needed to fill a report: its own, and for a baseline those of comparable days. */
export function evidenceWindows(
  { intervals, wanted: { quantity } }: ReportWindow,
  calendar: Calendar,
  maxGap: Millis,
): readonly Window[] {
  const hasBaseline = quantity === "baseline" || quantity === "deltaUsage";
  const days = hasBaseline ? intervals.flatMap(({ span }) => comparableDays(span, calendar)) : [];
  return withMargins([spanOf(intervals), ...days], maxGap);
}

/** These windows with `maxGap` on both sides, in which a reading still tells of what is inside. */
export const withMargins = (windows: readonly Window[], maxGap: Millis): readonly Window[] =>
  joined(windows.map(({ from, until }) => ({ from: instant(from - maxGap), until: after(until, maxGap) })));

/** Those that touch or overlap become one, so that nothing is read twice. */
function joined(windows: readonly Window[]): readonly Window[] {
  const apart: Window[] = [];
  for (const window of windows.toSorted((a, b) => a.from - b.from)) {
    const before = apart.at(-1);
    if (before === undefined || before.until < window.from) apart.push(window);
    else apart[apart.length - 1] = { from: before.from, until: later(before.until, window.until) };
  }
  return apart;
}
