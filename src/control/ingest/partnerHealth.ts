import { earlier, type Instant, type Millis } from "../../domain/units.ts";
import type { WallClock } from "../../platform/clock.ts";

/** Health of the partner's service, from the results of our requests. */
export interface PartnerHealth {
  /** Time of the last usable answer. Start of the program before the first one. */
  readonly answeredAt: Instant;
  readonly everAnswered: boolean;
  /** Failed requests in a row. */
  readonly failures: number;
  readonly lastFailure: string | null;
  /** Reasons logged since the last answer. A cut line alternates between reasons. */
  readonly loggedReasons: readonly string[];
  /** The alarm for too long a silence was logged. */
  readonly stale: boolean;
  /** Our clock minus the partner's, from its last answer. Null: the answer had no date. */
  readonly skew: Millis | null;
  /** Answers in a row with too large a skew. */
  readonly skewed: number;
}

/** Result of one request, as far as health needs it. */
export type Attempt =
  | { readonly ok: true; readonly skew: Millis | null }
  /** `asked` false: no request was made, because of our own limit or a wait that the partner set. */
  | { readonly ok: false; readonly asked: boolean; readonly reason: string };

/** A line for the log. */
export interface HealthMessage {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
}

/** Two consecutive answers must show the skew, because one answer may have been slow. */
const SKEWED_ANSWERS = 2;

/** Cap on reasons logged in one outage. A partner that varies its error texts must not fill the disk. */
const REASONS_OF_AN_OUTAGE = 16;

export const freshHealth = (now: Instant): PartnerHealth => ({
  answeredAt: now,
  everAnswered: false,
  failures: 0,
  lastFailure: null,
  loggedReasons: [],
  stale: false,
  skew: null,
  skewed: 0,
});

/** The health after one more attempt, and the lines to log. Each change is logged once. */
export function recordAttempt(
  before: PartnerHealth,
  attempt: Attempt,
  now: Instant,
  limits: { readonly staleAfter: Millis; readonly maxSkew: Millis; readonly wallClock: WallClock },
): { readonly health: PartnerHealth; readonly messages: readonly HealthMessage[] } {
  const messages: HealthMessage[] = [];
  if (attempt.ok) {
    const skew = attempt.skew ?? 0;
    const skewed = Math.abs(skew) > limits.maxSkew ? before.skewed + 1 : 0;
    if (before.failures > 0) messages.push({ level: "info", message: "the partner answers again" });
    else if (!before.everAnswered) messages.push({ level: "info", message: "the partner answers" });
    if (skewed === SKEWED_ANSWERS) {
      const off = `${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? "ahead of" : "behind"}`;
      messages.push({
        level: "warn",
        message: `our clock is ${off} the partner's: check the time of this machine`,
      });
    }
    return { health: { ...freshHealth(now), everAnswered: true, skew: attempt.skew, skewed }, messages };
  }
  const { asked, reason } = attempt;
  const isNews =
    asked && !before.loggedReasons.includes(reason) && before.loggedReasons.length < REASONS_OF_AN_OUTAGE;
  if (isNews) {
    messages.push({
      level: "warn",
      message: `the partner cannot be asked: ${reason}; the stored plan goes on`,
    });
  }
  // A later time comes from a clock that was set back since. The silence counts from now then.
  const answeredAt = earlier(before.answeredAt, now);
  const stale = now - answeredAt > limits.staleAfter;
  if (stale && !before.stale) {
    messages.push({
      level: "error",
      message: `no answer from the partner since ${limits.wallClock(answeredAt)}: what is known may be out of date`,
    });
  }
  const loggedReasons = isNews ? [...before.loggedReasons, reason] : before.loggedReasons;
  const tried = asked ? { failures: before.failures + 1, lastFailure: reason, loggedReasons } : {};
  return { health: { ...before, ...tried, answeredAt, stale }, messages };
}
