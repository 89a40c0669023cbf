/** Answers of the operator's API, as far as the page reads them (docs/openapi.json). Times are ISO, UTC. */

export type Role = "viewer" | "operator" | "integrator";

export interface Person {
  readonly name: string;
  readonly role: Role;
  readonly via: "open" | "session" | "token";
}

interface Problem {
  readonly since: string | null;
  readonly kind: string;
  readonly subject: string | null;
  readonly message: string;
  readonly action: string;
}

export interface Status {
  readonly site: string;
  readonly timezone: string;
  readonly startedAt: string;
  readonly mode: "drive" | "observe";
  /** Null: the mode is as configured. */
  readonly observing: { readonly until: string; readonly by: string; readonly reason: string } | null;
  readonly ready: boolean;
  readonly now: string;
  readonly epoch: number;
  readonly lookedAt: string | null;
  readonly partner: {
    readonly ok: boolean;
    readonly answeredAt: string | null;
    readonly failures: number;
    readonly lastFailure: string | null;
    readonly stale: boolean;
    readonly skewMs: number | null;
  };
  readonly broker: { readonly connected: boolean; readonly reason: string | null };
  readonly problems: readonly Problem[];
  readonly chargers: {
    readonly total: number;
    readonly online: number;
    readonly unreachable: number;
    readonly limited: number;
    readonly notFollowed: number;
  };
  readonly certificates: readonly Certificate[];
  readonly webhook: { readonly refused: Readonly<Record<string, number>> } | null;
  readonly store: {
    readonly failures: number;
    readonly longestCommitMs: number;
    readonly failing: { readonly reason: string; readonly forMs: number } | null;
    readonly commits: number;
    readonly bytes: number;
  };
}

interface Certificate {
  readonly certificate: string;
  readonly subject: string;
  readonly notAfter: string;
  /** Null: it does not end soon. */
  readonly alarm: string | null;
}

export interface Ask {
  readonly kind: string;
  readonly level?: number;
}

export interface EnergyEvent {
  readonly id: string;
  readonly state: "planned" | "active" | "ended" | "withdrawn" | "forgotten";
  readonly name?: string;
  readonly programId?: string;
  readonly priority?: number | null;
  readonly start?: string;
  readonly end?: string;
  readonly randomizeStartMs?: number;
  readonly ask?: Ask;
  readonly vehicles?: readonly string[];
  readonly foreignVehicles?: number;
  readonly unknownVehicles?: readonly { readonly id: string; readonly didYouMean: string | null }[];
  readonly odd?: readonly string[];
  readonly source?: string;
  readonly receivedAt?: string;
  readonly modified?: string;
  readonly withdrawnAt?: string;
}

/** A setpoint. A release leaves the charger to itself. */
export interface Setpoint {
  readonly kind: "current" | "power" | "pause" | "release";
  readonly value: number | null;
  readonly unit: "A" | "W" | null;
}

interface Winner {
  readonly event: string;
  readonly priority: number | null;
  readonly asked: string;
  readonly from: string;
  readonly until: string;
  readonly offsetMs: number;
  readonly spreadMs: number;
}

interface HoldFacts {
  readonly id: string;
  readonly scope: Scope;
  readonly kind: "exempt" | "level";
  readonly level: Level | null;
  readonly end: "at" | "unplugged" | "energy" | "events";
  readonly since: string;
  readonly until: string | null;
  readonly by: string;
  readonly reason: string;
}

type Progress =
  | "none"
  | "planned"
  | "acknowledged"
  | "accepted"
  | "refused"
  | "followed"
  | "notFollowed"
  | "observed"
  | "failed";

export interface Charger {
  readonly charger: string;
  readonly vehicle: string | null;
  readonly occupant: "vehicle" | "unknown" | "nobody";
  readonly asked: (Setpoint & { readonly event: string }) | null;
  readonly allowed: Setpoint | null;
  readonly measured: {
    readonly at: string;
    readonly state: string | null;
    readonly powerW: number | null;
    readonly currentsA: readonly number[] | null;
    readonly limitA: number | null;
  } | null;
  readonly hold: HoldFacts | null;
  readonly online: boolean | null;
  readonly reachable: boolean | null;
  readonly heardAt: string | null;
  readonly verdict: Progress;
  readonly command: string | null;
  readonly reason: {
    readonly words: string;
    readonly cause: string;
    readonly winner: Winner | null;
    readonly limits: readonly { readonly by: string; readonly asked: string; readonly allowed: string }[];
  } | null;
  readonly until: string | null;
  readonly writes: { readonly lastHour: number; readonly most: number } | null;
  readonly commissioning: boolean;
  /** State of charge of the vehicle, in %. Null: not reported. */
  readonly soc: number | null;
}

export interface Vehicle {
  readonly id: string;
  readonly name: string;
  readonly charger: string | null;
  readonly command: string | null;
  readonly planned: readonly {
    readonly event: string;
    readonly from: string;
    readonly until: string;
    readonly offsetMs: number;
    readonly asked: { readonly kind: string; readonly amperes?: number; readonly watts?: number };
  }[];
}

export type Scope = { readonly vehicle: string } | { readonly charger: string } | { readonly site: true };

export interface Level {
  readonly currentA?: number;
  readonly powerW?: number;
  readonly pause?: true;
  readonly release?: true;
}

export interface Hold extends HoldFacts {
  readonly state: "open" | "ended";
  readonly sentence?: string;
  readonly ended: { readonly at: string; readonly by: string; readonly why: string } | null;
  readonly deliveredWh?: number | null;
  readonly chargers?: number;
  readonly effect?: readonly {
    readonly charger: string;
    readonly vehicle: string | null;
    readonly level: Level | null;
    readonly applies?: boolean;
    readonly overrules?: readonly string[];
    readonly waits?: string | null;
    readonly verdict: Progress;
  }[];
  readonly others?: readonly { readonly id: string; readonly sentence: string }[];
}

export interface Alarm {
  readonly key: string;
  readonly kind: string;
  readonly severity: "info" | "warning" | "critical";
  readonly state: "open" | "acknowledged" | "cleared";
  readonly since: string;
  readonly lastSeen: string;
  readonly clearedAt: string | null;
  readonly count: number;
  readonly subject: string | null;
  readonly message: string;
  readonly action: string;
  readonly acknowledged: { readonly at: string; readonly by: string; readonly note: string } | null;
}

/** When a vehicle must leave, with how much, and what is expected of it. */
export interface Departure {
  readonly vehicle: string;
  readonly at: string;
  readonly need: { readonly energyWh: number } | { readonly soc: number };
  readonly state: "ready" | "onTime" | "short" | "unknown";
  readonly soc: number | null;
  /** Energy that is missing until the need is met. Null: not known. */
  readonly remainingWh: number | null;
  readonly readyAt: string | null;
  /** Seconds between ready and departure. Negative: too late. Null: not known. */
  readonly slackS: number | null;
  readonly short: { readonly energyWh: number } | null;
  readonly cause: "event" | "hold" | "charger" | "vehicle" | "time" | "notPluggedIn" | null;
  readonly because: string;
  /** Facts that are not known. */
  readonly missing: readonly string[];
}
