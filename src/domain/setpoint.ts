import type { Amperes, Instant, Watts } from "./units.ts";

/** The level asked for: an upper bound that the charger may draw less than. */
export type Setpoint =
  | { readonly kind: "current"; readonly amperes: Amperes }
  | { readonly kind: "power"; readonly watts: Watts };

/** How many phases a charger was switched to, with what the next switch has to wait for. */
export interface SwitchedTo {
  readonly count: PhaseCount;
  /** When it was told. */
  readonly since: Instant;
  /** Since when it may charge on them; null: it is paused. */
  readonly chargingSince: Instant | null;
}

/** Chargers are switched between one phase and all three. */
export type PhaseCount = 1 | 3;

/** `phases` is absent where they were not switched lately: the charger has all that it is wired with. */
interface OnPhases {
  readonly phases?: SwitchedTo;
}

/** What a charger is told: a level, nothing at all, or that it is its own master again. */
export type Desired =
  | (Setpoint & OnPhases)
  | ({ readonly kind: "pause" } & OnPhases)
  | { readonly kind: "release" };

/** The phases that it was switched to; null: they were left alone. */
export const switchedIn = (desired: Desired): SwitchedTo | null =>
  desired.kind === "release" ? null : (desired.phases ?? null);

/** What says nothing of phases leaves them as they are; a release gives all of them back. */
export function onSamePhases(desired: Desired, before: Desired | null): Desired {
  const phases = before === null ? null : switchedIn(before);
  return desired.kind === "release" || desired.phases !== undefined || phases === null
    ? desired
    : { ...desired, phases };
}

/** "16 A", "11040 W", "pause", "release"; "10 A on 1 phase" where phases were switched. */
export function formatLevel(desired: Desired): string {
  const count = switchedIn(desired)?.count;
  const phases = count === undefined ? "" : ` on ${formatPhases(count)}`;
  switch (desired.kind) {
    case "current":
      return `${desired.amperes} A${phases}`;
    case "power":
      return `${desired.watts} W${phases}`;
    case "pause":
      return `pause${phases}`;
    case "release":
      return desired.kind;
  }
}

/** "1 phase", "3 phases". */
export const formatPhases = (count: PhaseCount): string => (count === 1 ? "1 phase" : `${count} phases`);

/** Value and unit as every contract outside spells them; null for pause and release. */
export function valueOf(desired: Desired): { value: number | null; unit: "A" | "W" | null } {
  switch (desired.kind) {
    case "current":
      return { value: desired.amperes, unit: "A" };
    case "power":
      return { value: desired.watts, unit: "W" };
    case "pause":
    case "release":
      return { value: null, unit: null };
  }
}
