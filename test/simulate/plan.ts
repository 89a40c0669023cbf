/** What happens on one simulated day, as values: a day can be printed, cut down and played again. */
import type { Misidentity } from "./simIdentity.ts";
import type { Mistake } from "./simTray.ts";

/** Milliseconds since midnight, true time. */
type DayTime = number;

/** What an event asks for, as the partner means it. */
export type PlannedAsk =
  | { readonly kind: "current"; readonly amperes: number }
  | { readonly kind: "power"; readonly kilowatts: number }
  | { readonly kind: "unknown" };

/** One report descriptor (partner-interface 2.3). Counts of zero are not set. */
export interface PlannedReport {
  readonly payloadType: string;
  readonly historical: boolean;
  readonly numIntervals: number;
  /** -1: without end. */
  readonly repeat: number;
}

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
  readonly reports: readonly PlannedReport[];
}

/** How the partner fails to answer well. `empty`, `partial`: a list without all, or some, of its events. */
export type Misanswer =
  | "silent"
  | "error"
  | "garbage"
  | "empty"
  | "partial"
  | "slow"
  | "unauthorized"
  | "throttled";

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
  | { readonly kind: "identity"; readonly how: Misidentity; readonly lasts: number }
  | { readonly kind: "tray"; readonly how: Mistake; readonly lasts: number }
  /** Off and on again: it forgets what it was told. */
  | {
      readonly kind: "reboot";
      readonly charger: string;
      readonly lasts: number;
      /** Absent: it forgets. False: only its connection is lost, and it goes on as it was told. */
      readonly forgets?: false;
      /** When the broker sends its last will, ms; at its return at the latest. Absent: within 2 s. */
      readonly willAfter?: number;
    }
  /** It hears nothing but says that it is there. */
  | { readonly kind: "deaf"; readonly charger: string; readonly lasts: number }
  /** It refuses everything, answers for commands that it never got, and reports what is not so. */
  | { readonly kind: "lies"; readonly charger: string; readonly lasts: number }
  | { readonly kind: "mute"; readonly charger: string; readonly lasts: number }
  /** It repeats that it is online, though it never was offline. */
  | { readonly kind: "greets"; readonly charger: string; readonly every: number; readonly lasts: number }
  /** `vehicle`: one of ours, a stranger, or null for nobody. */
  | { readonly kind: "plug"; readonly charger: string; readonly vehicle: string | null }
  /** It names a vehicle that is not on it, as long as another one is. */
  | { readonly kind: "claims"; readonly charger: string; readonly vehicle: string; readonly lasts: number }
  /** The gateway's clock is set, and set right again. */
  | { readonly kind: "clock"; readonly by: number; readonly lasts: number }
  /** The gateway dies, and comes back at 1970: its clock is set right so much later. */
  | { readonly kind: "noTime"; readonly downFor: number; readonly lasts: number }
  /** The gateway's machine sleeps: timers and the monotonic clock stand still, the wall clock does not. */
  | { readonly kind: "suspend"; readonly lasts: number }
  /** An operator overrides the events on a vehicle, a charger or the site. */
  | ({ readonly kind: "hold" } & PlannedHold)
  /** An operator ends the hold that was opened first. */
  | { readonly kind: "endHold" }
  /** An operator has the site observe for so long. */
  | { readonly kind: "observe"; readonly lasts: number }
  /** An operator has it drive again. */
  | { readonly kind: "drive" }
  | { readonly kind: "disk"; readonly how: "full" | "broken" | "doubtful" | "slow"; readonly lasts: number }
);

export interface PlannedHold {
  readonly scope: { readonly vehicle: string } | { readonly charger: string } | { readonly site: true };
  /** Null: exempt. */
  readonly level:
    | { readonly currentA: number }
    | { readonly powerW: number }
    | { readonly pause: true }
    | null;
  /** A number: so long, ms. */
  readonly until: number | "events" | "unplugged" | { readonly energyWh: number };
}

export interface PlannedCharger {
  readonly id: string;
  readonly maxCurrent: number;
  readonly belowMinimum: "pause" | "hold";
  readonly phases: number;
  /** Whether it says which vehicle is on it. */
  readonly tells: boolean;
  /** Absent: it speaks the native topics. */
  readonly make?: PlannedMake;
  /** Whether it is switched between one and three phases. What it does then is not judged. Absent: no. */
  readonly switchesPhases?: true;
}

/** How a charger of a make is spoken with. */
export interface PlannedMake {
  /** Name of its profile. */
  readonly profile: string;
  readonly params: Readonly<Record<string, string>>;
  /** What its currents are a multiple of, A. */
  readonly step: number;
  readonly takesWatts: boolean;
}

export interface PlannedVehicle {
  readonly id: string;
  /** The fixed binding. */
  readonly charger: string | null;
  readonly maxCurrent: number | null;
  /** It leaves each day. Absent: it has no departure. */
  readonly leaves?: PlannedDeparture;
}

export interface PlannedDeparture {
  /** "05:40". */
  readonly at: string;
  readonly energyKwh: number;
}

/** The knobs of the configuration that the day is played with. */
export interface Knobs {
  readonly priority: "lower" | "higher";
  readonly priorityZero: "highest" | "unset";
  readonly ties: "newest" | "mostRestrictive";
  readonly randomizedEnd: "shift" | "clip";
  /** Milliseconds. */
  readonly pollEvery: number;
  /** Whether readings are kept and reports are made: such a day takes three times as long to play. */
  readonly reports: boolean;
}

/** Where and when the depot is. */
export interface Calendar {
  /** What the plan counts from, ms since the epoch. */
  readonly midnight: number;
  readonly zone: string;
  /** The zone that the partner writes its starts in. */
  readonly writtenIn: string;
}

export interface Day extends Calendar {
  readonly seed: number;
  readonly chargers: readonly PlannedCharger[];
  readonly vehicles: readonly PlannedVehicle[];
  readonly knobs: Knobs;
  /** The departures are guarded: at most so many vehicles are freed at once. Absent: nobody leaves. */
  readonly guardMost?: number;
  /** In order of time. */
  readonly actions: readonly Action[];
  /** When it is over; absent: at midnight. */
  readonly ends?: DayTime;
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Nothing goes wrong from then on, and nothing is edited: by midnight all must be well. */
export const CALM_FROM = 23 * HOUR;
