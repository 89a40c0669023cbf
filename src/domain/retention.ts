import type { Millis, Instant } from "./units.ts";

/** How long what is over is kept, and how much of it. */
export interface Retention {
  /** Ended events, from their last window's end or their receipt, whichever is later. */
  readonly events: Millis;
  /** Ended events beyond this number go before their time, the oldest first. */
  readonly maxEvents: number;
  /** Tombstones, from the withdrawal. */
  readonly withdrawn: Millis;
  /** Reports that were sent, or given up, from when they were composed. */
  readonly reports: Millis;
  /** Rows of the record. */
  readonly audit: Millis;
  /** Rows beyond this number go before their time. */
  readonly maxAuditRows: number;
  /** Bytes on disk of readings, record and ended events together. Each has a share of them (see `capsOf`). */
  readonly bytes: number;
}

/** The oldest rows of the record that may go, and what the checkpoint row must say of the last of them. */
export interface OldRows {
  readonly rows: number;
  readonly through: number;
  readonly hash: string;
  /** When the last of them was written. */
  readonly at: Instant;
}

export interface OldRowsQuery {
  /** Rows written before then may go; null: none for its age. */
  readonly before: Instant | null;
  /** Rows beyond this number may go. */
  readonly maxRows: number;
  /** At most so many at a time. */
  readonly most: number;
}
