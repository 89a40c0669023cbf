import type { EventId, Instant } from "../units.ts";
import type { CoordinationEvent } from "./event.ts";

/** One revision with its start settled: where the wire said "now", the moment of the first receipt. */
export interface Revision {
  readonly event: CoordinationEvent;
  readonly start: Instant;
}

/** A revision that was replaced or withdrawn at `at`, perhaps in the middle of what it asked for. */
export interface Ending {
  readonly revision: Revision;
  readonly at: Instant;
}

/** All that is stored of one event ID. Dispatches are derived from it (expand), never stored. */
export type KnownEvent =
  | {
      readonly kind: "live";
      readonly id: EventId;
      readonly revision: Revision;
      /** What a fetch returned wins over what a webhook said of the same revision. */
      readonly source: "webhook" | "fetch";
      readonly receivedAt: Instant;
      readonly endings: readonly Ending[];
      /** The most report descriptors that any revision had: each ends sent or flagged, whatever became of it (L3). */
      readonly descriptors: number;
    }
  /** A tombstone: only a newer revision, or a later fetch that holds the event, revives it. */
  | {
      readonly kind: "withdrawn";
      readonly id: EventId;
      /** The highest revision seen; the receipt where none was. */
      readonly watermark: Instant;
      readonly receivedAt: Instant;
      readonly endings: readonly Ending[];
      readonly descriptors: number;
    };
