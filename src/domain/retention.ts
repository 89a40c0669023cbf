import type { Millis, Instant } from "./units.ts";

/** Limits for keeping past data. */
export interface Retention {
  /** Ended events, counted from their last window end or their receipt, whichever is later. */
  readonly events: Millis;
  /** Maximum ended events. The oldest go first. */
  readonly maxEvents: number;
  /** Tombstones, counted from the withdrawal. */
  readonly withdrawn: Millis;
  /** Sent or abandoned reports, counted from their composition. */
  readonly reports: Millis;
  /** Audit rows. */
  readonly audit: Millis;
  /** Maximum audit rows. */
  readonly maxAuditRows: number;
  /** Bytes on disk of readings, audit rows and ended events together. `capsOf` divides them. */
  readonly bytes: number;
}

/** Oldest audit rows that may be pruned, with what the checkpoint row needs of the last one. */
export interface OldRows {
  readonly rows: number;
  readonly through: number;
  readonly hash: string;
  /** When the last of them was written. */
  readonly at: Instant;
}

export interface OldRowsQuery {
  /** Rows written before this moment may go. Null: no limit by age. */
  readonly before: Instant | null;
  /** Rows beyond this number may go. */
  readonly maxRows: number;
  /** Maximum rows per run. */
  readonly most: number;
}
