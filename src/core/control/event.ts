import type { EventId, Instant, Millis } from "../units.ts";

/** The payload types that are acted on, as the partner spells them. */
export const PAYLOAD_TYPES = { current: "CurrentLevel", power: "PowerLevel" } as const;

/** What an event asks for. `level` is the wire's own number; its unit is a setting of the site (expand). */
export type Ask =
  | { readonly kind: "current"; readonly level: number }
  | { readonly kind: "power"; readonly level: number }
  /** Unknown payload types are kept, shown, reported if asked, and never acted on. */
  | { readonly kind: "unknown"; readonly payloadType: string };

export interface Target {
  readonly type: string;
  readonly values: readonly string[];
}

/** partner-interface 2.3, as it arrived: what zero or absence means is decided by the report plan. */
export interface ReportDescriptor {
  readonly payloadType: string;
  readonly readingType: string;
  readonly targets: readonly Target[];
  readonly aggregate: boolean;
  readonly historical: boolean;
  readonly frequency: number | null;
  readonly numIntervals: number | null;
  readonly repeat: number | null;
  readonly startInterval: number | null;
}

/** One revision of an event, normalized (partner-interface 2.1). Total: nothing here is optional. */
export interface CoordinationEvent {
  readonly id: EventId;
  /** modificationDateTime; createdDateTime where that is absent. */
  readonly revision: Instant;
  readonly created: Instant;
  readonly name: string;
  readonly programId: string;
  readonly priority: number | null;
  /**
   * The start as the start offset is derived from it: an ISO instant with milliseconds, so that two spellings of one
   * instant draw alike. The text on the wire where that means "now" (DESIGN 5.3).
   */
  readonly wireStart: string;
  /** "now": a start before the year 2000, anchored to the first receipt by intake. */
  readonly start: Instant | "now";
  readonly duration: Millis;
  /** Zero: none asked. */
  readonly randomizeStart: Millis;
  readonly ask: Ask;
  readonly targets: readonly Target[];
  readonly reports: readonly ReportDescriptor[];
  /** SHA-256 of all of the above, hex: two revisions with the same hash are the same. */
  readonly hash: string;
}
