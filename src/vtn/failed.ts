import type { Millis } from "../core/units.ts";

/** Nothing usable came back, or nothing was asked. */
export interface Failed {
  readonly kind: "failed";
  /** False: no request was made, or the answer is about one id only. Nothing new about the partner itself. */
  readonly asked: boolean;
  /** In words, without anything secret. */
  readonly reason: string;
  /** Of the answer; null where no whole answer came. */
  readonly status: number | null;
  /** Asking again before this has passed is pointless; null: the caller's own back-off. */
  readonly retryAfter: Millis | null;
}

/** A failure to answer, as a value. */
export const failed = (reason: string, status: number | null, retryAfter: Millis | null): Failed => ({
  kind: "failed",
  asked: true,
  reason,
  status,
  retryAfter,
});

/** Kept back by ourselves: a limit of ours, or a wait that an earlier answer told us. */
export const unasked = (reason: string, retryAfter: Millis | null): Failed => ({
  ...failed(reason, null, retryAfter),
  asked: false,
});
