import type { Millis } from "../core/units.ts";

/** Asked, and nothing usable came back. */
export interface Failed {
  readonly kind: "failed";
  /** In words, without anything secret. */
  readonly reason: string;
  /** Of the answer; null where no whole answer came. */
  readonly status: number | null;
  /** Asking again before this has passed is pointless; null: the caller's own back-off. */
  readonly retryAfter: Millis | null;
}

/** A failure as a value. */
export const failed = (reason: string, status: number | null, retryAfter: Millis | null): Failed => ({
  kind: "failed",
  reason,
  status,
  retryAfter,
});
