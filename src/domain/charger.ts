import type { Amperes, ChargerId, Millis, Watts } from "./units.ts";

/** What a charger does when the last event on it has ended. */
export type AtEnd =
  | { readonly kind: "release" }
  | { readonly kind: "pause" }
  | { readonly kind: "current"; readonly amperes: Amperes }
  | { readonly kind: "power"; readonly watts: Watts };

/** What a charger does by itself once nothing more comes from us. */
type WhenSilent =
  /** Its lease or the end of its command passes, and it takes its own default. */
  | { readonly kind: "lease" }
  | { readonly kind: "timeout"; readonly after: Millis; readonly effect: "pause" | "own limits" }
  /** It holds the last level until somebody frees it. */
  | { readonly kind: "holds" };

/** How often, and with which pauses, a charger may be switched between one phase and three. */
export interface PhaseSwitching {
  /** Least time from one switch to the next. */
  readonly every: Millis;
  /** How long it is paused before it is switched. */
  readonly settle: Millis;
  /** How long it stays paused after it. */
  readonly deadTime: Millis;
}

/** One outlet, as the configuration declares it. A limit that was not declared is null. */
export interface Charger {
  readonly id: ChargerId;
  readonly profile: string;
  readonly params: Readonly<Record<string, string | number | boolean>>;
  /** Name of the broker it is reached over: "" is the site's own. */
  readonly broker: string;
  readonly minCurrent: Amperes | null;
  readonly maxCurrent: Amperes | null;
  readonly minPower: Watts | null;
  readonly maxPower: Watts | null;
  /** How much it can feed back, as a positive number; null: it cannot. */
  readonly maxDischarge: Watts | null;
  readonly phases: number;
  /** Phase to neutral, volts. */
  readonly voltage: number;
  readonly belowMinimum: "pause" | "hold";
  readonly atEnd: AtEnd;
  /** Whether it can be told watts; else powers become currents. */
  readonly takesWatts: boolean;
  /** A current is told in multiples of this. */
  readonly currentStep: Amperes;
  readonly minInterval: Millis;
  /** Least time between a pause and what ends it. */
  readonly minOff: Millis;
  /** Least time between the end of a pause and one that only a switch of phases needs. */
  readonly minOn: Millis;
  /** Null: its phases are left alone. */
  readonly phaseSwitching: PhaseSwitching | null;
  /** Most commands in an hour; null: any number. */
  readonly writesPerHour: number | null;
  /** How often a standing command is sent again; null: only with a reason, since every write wears it. */
  readonly refresh: Millis | null;
  /** Whether a release is sent again as well: it stands still when nobody tells it a level. */
  readonly refreshesRelease: boolean;
  readonly whenSilent: WhenSilent;
  /** Smallest increase worth a message: A for currents, times phases and voltage for powers. */
  readonly deadband: Amperes;
}

/** A; nothing is asked more finely (DESIGN 5.4). */
export const FINEST_STEP = 0.1;
