/** What happens on one simulated day, as values: a day can be printed, cut down and played again. */

/** Milliseconds since midnight, true time. */
type DayTime = number;

/** What an event asks for, as the partner means it. */
export type PlannedAsk =
  | { readonly kind: "current"; readonly amperes: number }
  | { readonly kind: "power"; readonly kilowatts: number }
  | { readonly kind: "unknown" };

/** One revision of an event. */
export interface PlannedEvent {
  readonly id: string;
  readonly start: DayTime;
  readonly duration: number;
  /** Zero: none asked. */
  readonly spread: number;
  readonly priority: number | null;
  readonly ask: PlannedAsk;
  readonly vehicles: readonly string[];
}

/** How the partner fails to answer well. `empty`, `partial`: a list without all, or some, of its events. */
export type Misanswer = "silent" | "error" | "garbage" | "empty" | "partial" | "slow";

/** Where a process ends: at once, at one of the moments around a commit or a publish, or so many turns later. */
export type CrashPoint =
  | "at once"
  | "before a commit"
  | "after a commit"
  | "before a publish"
  | "after a publish"
  | { readonly turns: number };

export type Action = { readonly at: DayTime } & (
  | {
      /** New, changed, or back again. */
      readonly kind: "put";
      readonly event: PlannedEvent;
      /** Without a new modification time. */
      readonly sameTime: boolean;
      /** When the webhook brings this revision, ms from now; none: only a list will tell. */
      readonly deliveries: readonly number[];
    }
  | {
      readonly kind: "withdraw";
      readonly id: string;
      /** When the webhook says so; none: only its absence will tell. */
      readonly deliveries: readonly number[];
    }
  | { readonly kind: "crash"; readonly point: CrashPoint; readonly downFor: number }
  /** The broker is gone, with every connection to it. */
  | { readonly kind: "brokerGone"; readonly lasts: number }
  /** Only the gateway has no connection; the chargers do. */
  | { readonly kind: "linkLost"; readonly lasts: number }
  | { readonly kind: "brokerSlow"; readonly lasts: number }
  /** Chargers hear messages late, twice, and in another order. */
  | { readonly kind: "unruly"; readonly lasts: number }
  | { readonly kind: "partner"; readonly how: Misanswer; readonly lasts: number }
  /** Off and on again: it forgets what it was told. */
  | { readonly kind: "reboot"; readonly charger: string; readonly lasts: number }
  /** It hears nothing but says that it is there. */
  | { readonly kind: "deaf"; readonly charger: string; readonly lasts: number }
  /** It refuses everything, answers for commands that it never got, and reports what is not so. */
  | { readonly kind: "lies"; readonly charger: string; readonly lasts: number }
  | { readonly kind: "mute"; readonly charger: string; readonly lasts: number }
  /** `vehicle`: one of ours, a stranger, or null for nobody. */
  | { readonly kind: "plug"; readonly charger: string; readonly vehicle: string | null }
  /** The gateway's clock is set, and set right again. */
  | { readonly kind: "clock"; readonly by: number; readonly lasts: number }
  | { readonly kind: "disk"; readonly how: "full" | "broken" | "doubtful" | "slow"; readonly lasts: number }
);

export interface PlannedCharger {
  readonly id: string;
  readonly maxCurrent: number;
  readonly belowMinimum: "pause" | "hold";
  readonly phases: number;
  /** Whether it says which vehicle is on it. */
  readonly tells: boolean;
}

export interface PlannedVehicle {
  readonly id: string;
  /** The fixed binding. */
  readonly charger: string | null;
  readonly maxCurrent: number | null;
}

/** The knobs of the configuration that the day is played with. */
export interface Knobs {
  readonly priority: "lower" | "higher";
  readonly priorityZero: "highest" | "unset";
  readonly ties: "newest" | "mostRestrictive";
  readonly randomizedEnd: "shift" | "clip";
  /** Milliseconds. */
  readonly pollEvery: number;
}

export interface Day {
  readonly seed: number;
  readonly chargers: readonly PlannedCharger[];
  readonly vehicles: readonly PlannedVehicle[];
  readonly knobs: Knobs;
  /** In order of time. */
  readonly actions: readonly Action[];
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Nothing goes wrong from then on, and nothing is edited: by midnight all must be well. */
export const CALM_FROM = 23 * HOUR;
