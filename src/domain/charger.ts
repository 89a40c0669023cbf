import type { Amperes, ChargerId, Millis, Watts } from "./units.ts";

/** Action when the last event on a charger has ended. */
export type AtEnd =
  | { readonly kind: "release" }
  | { readonly kind: "pause" }
  | { readonly kind: "current"; readonly amperes: Amperes }
  | { readonly kind: "power"; readonly watts: Watts };

/** Behaviour of a charger that receives nothing from us any more. */
type WhenSilent =
  /** The lease or `until` of the command passes; then the charger's own default applies. */
  | { readonly kind: "lease" }
  | { readonly kind: "timeout"; readonly after: Millis; readonly effect: "pause" | "own limits" }
  /** The last level holds until it is changed or released. */
  | { readonly kind: "holds" };

/** Limits for switching a charger between one phase and three. */
export interface PhaseSwitching {
  /** Minimum time between two switches. */
  readonly every: Millis;
  /** Pause before the switch. */
  readonly settle: Millis;
  /** Pause after the switch. */
  readonly deadTime: Millis;
}

/** Profile of a charger that speaks our own messages. Its commands have numbers that it compares. */
export const NATIVE = "native";

export const isNative = ({ profile }: Pick<Charger, "profile">): boolean => profile === NATIVE;

/** An outlet, as configured. Null limit: not configured. */
export interface Charger {
  readonly id: ChargerId;
  readonly profile: string;
  readonly params: Readonly<Record<string, string | number | boolean>>;
  /** Broker name. "" is the site's own broker. */
  readonly broker: string;
  readonly minCurrent: Amperes | null;
  readonly maxCurrent: Amperes | null;
  readonly minPower: Watts | null;
  readonly maxPower: Watts | null;
  /** Largest power fed back, as a positive number. Null: the charger cannot discharge. */
  readonly maxDischarge: Watts | null;
  readonly phases: number;
  /** Phase to neutral, V. */
  readonly voltage: number;
  readonly belowMinimum: "pause" | "hold";
  readonly atEnd: AtEnd;
  /** Accepts a power in W. False: powers are converted to currents. */
  readonly takesWatts: boolean;
  /** Resolution of a current, A. */
  readonly currentStep: Amperes;
  readonly minInterval: Millis;
  /** Minimum time from a pause to the next level or release. */
  readonly minOff: Millis;
  /** Minimum time from the end of a pause to a pause that only a phase switch needs. */
  readonly minOn: Millis;
  /** Null: phases are never switched. */
  readonly phaseSwitching: PhaseSwitching | null;
  /** Maximum commands per hour, to spare the charger's flash memory. Null: unlimited. */
  readonly writesPerHour: number | null;
  /**
   * Interval for repeating the current command. Null: repeat only for a reason, because each write wears the
   * charger's memory.
   */
  readonly refresh: Millis | null;
  /** Repeats a release as well. Such a charger stops charging when it receives no level. */
  readonly refreshesRelease: boolean;
  readonly whenSilent: WhenSilent;
  /** Smallest increase that is sent, A. For a power: A x phases x voltage. */
  readonly deadband: Amperes;
}

/** Resolution of all currents, A. */
export const FINEST_STEP = 0.1;
