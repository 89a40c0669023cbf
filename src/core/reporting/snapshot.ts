import type { Desired } from "../control/setpoint.ts";
import type { Window } from "../units.ts";
import { measuredEnergy } from "./energy.ts";
import type { Evidence } from "./evidence.ts";
import { last, type Step, within } from "./series.ts";
import type { ReportSettings } from "./settings.ts";

/** How a vehicle was at the end of the report, A, kW, percent, and the kWh that it used; null: not known. */
export interface Snapshot {
  readonly energy: number | null;
  readonly current: number | null;
  readonly power: number | null;
  readonly soc: number | null;
  /** What it was, or will be, told last. */
  readonly told: Desired | null;
}

/** What one vehicle's evidence says of the whole span of a report. */
export function snapshotOf(
  { energy, current, power, soc, commanded }: Evidence,
  span: Window,
  { maxGap, percentScale }: ReportSettings,
): Snapshot {
  const used = measuredEnergy(energy, span, maxGap).value;
  const latest = ({ steps }: { readonly steps: readonly Step<number>[] }, by: number): number | null => {
    const value = last(within(steps, span));
    return value === null ? null : value / by;
  };
  return {
    energy: used === null ? null : used / 1000,
    current: latest(current, 1),
    power: latest(power, 1000),
    soc: latest(soc, 100 / percentScale),
    told: last(within(commanded, span)),
  };
}

/** Energies, currents and powers added up, the charge averaged; what each was told cannot be. */
export function snapshotOfAll(snapshots: readonly Snapshot[]): Snapshot {
  const known = (pick: (snapshot: Snapshot) => number | null): readonly number[] =>
    snapshots.flatMap((snapshot) => pick(snapshot) ?? []);
  const charges = known(({ soc }) => soc);
  const charge = sum(charges);
  return {
    energy: sum(known(({ energy }) => energy)),
    current: sum(known(({ current }) => current)),
    power: sum(known(({ power }) => power)),
    soc: charge === null ? null : charge / charges.length,
    told: null,
  };
}

const sum = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((a, b) => a + b);
