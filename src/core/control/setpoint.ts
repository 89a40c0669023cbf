import type { Amperes, Watts } from "../units.ts";

/** The level asked for: an upper bound that the charger may draw less than. */
export type Setpoint =
  | { readonly kind: "current"; readonly amperes: Amperes }
  | { readonly kind: "power"; readonly watts: Watts };

/** What a charger is told: a level, nothing at all, or that it is its own master again. */
export type Desired = Setpoint | { readonly kind: "pause" } | { readonly kind: "release" };

/** "16 A", "11040 W", "pause", "release". */
export function inWords(desired: Desired): string {
  switch (desired.kind) {
    case "current":
      return `${desired.amperes} A`;
    case "power":
      return `${desired.watts} W`;
    case "pause":
    case "release":
      return desired.kind;
  }
}

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
