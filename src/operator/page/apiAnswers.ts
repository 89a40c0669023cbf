import type { Level } from "./apiTypes.ts";

/** Answers of the operator's API that the stream does not carry. Times are ISO, UTC. */

export interface Claim {
  readonly kind: "event" | "hold" | "limit" | "default";
  readonly source: string;
  readonly level: Level | null;
  readonly since: string | null;
  readonly until: string | null;
  readonly status: "wins" | "overruled" | "limits" | "waits" | "over";
  readonly because: string;
}

export interface Explanation {
  readonly sentence: string;
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly at: string;
  readonly claims: readonly Claim[];
  readonly without: { readonly level: Level; readonly most: Level | null };
}

export interface AuditRow {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly event: string | null;
  readonly command: string | null;
  readonly words: string;
  readonly facts: unknown;
  readonly hash: string;
}

/** Readings for a chart. Points are [ms since 1970, value]. */
export interface Readings {
  readonly from: string;
  readonly until: string;
  readonly current: readonly Point[];
  readonly power: readonly Point[];
  readonly soc: readonly Point[];
  readonly limit: readonly Point[];
  readonly setpoints: readonly {
    readonly at: string;
    readonly level: Level;
    readonly event: string | null;
  }[];
}

export type Point = readonly [number, number];

export interface Report {
  readonly name: string;
  readonly event: string;
  readonly payloadType: string | null;
  readonly state: "planned" | "waiting" | "sent" | "flagged";
  readonly due: string | null;
  readonly summary: string | null;
  readonly flags: readonly string[];
  readonly sentAt: string | null;
  readonly nextTry: string | null;
  readonly attempts: number;
  readonly status: number | null;
  readonly reason: string | null;
}

/** Facts that do not change while the daemon runs. */
export interface Site {
  readonly site: string;
  readonly timezone: string;
  readonly version: string;
  /** Lanes of the yard, each with its chargers in order. */
  readonly board: readonly (readonly string[])[];
  /** Profile of each charger. */
  readonly makes: Readonly<Record<string, string>>;
  /** Main fuse, in A per phase. Null: not configured. */
  readonly fuseA: number | null;
  /** Electrical facts of each charger. */
  readonly ratings: Readonly<Record<string, Rating>>;
}

/** What a charger can draw, by the configuration. Null: not configured. */
export interface Rating {
  readonly phases: number;
  readonly voltage: number;
  readonly maxCurrentA: number | null;
  readonly maxPowerW: number | null;
}

/** A fact of the proof of an event. Members that do not apply are absent. */
export interface ProofFact {
  readonly section: string;
  readonly what: string;
  readonly vehicle?: string;
  readonly from?: string;
  readonly value?: number;
  readonly words?: string;
}

/** The mode of the site. */
export interface Mode {
  readonly mode: "drive" | "observe";
  readonly onObserve: "release" | "keep" | null;
  readonly sentence: string;
  /** Chargers that were limited when the mode changed. Absent: it was only asked for. */
  readonly limited?: readonly string[];
}

/** Result of a check of the record. */
export interface RecordCheck {
  readonly ok: boolean;
  readonly rows?: number;
  /** The first wrong row. Null: the fault lies outside the record. */
  readonly seq?: number | null;
  readonly reason?: string;
}

/** Spot prices of one region. */
export interface Prices {
  readonly region: string;
  readonly prices: readonly {
    readonly start: string;
    readonly end: string;
    readonly value: number;
    readonly currency: string;
    readonly perUnit: string;
  }[];
}
