import { earlier, type Instant, type Millis } from "../../domain/units.ts";
import type { WallClock } from "../../platform/localTime.ts";

/** How the partner's service is doing, as far as our requests tell. */
export interface PartnerHealth {
  /** The last answer that could be used; the start of the program before the first. */
  readonly answeredAt: Instant;
  readonly everAnswered: boolean;
  /** Failed requests in a row. */
  readonly failures: number;
  readonly lastFailure: string | null;
  /** What was said to fail since the last answer: a cut line shows now as one thing, now as another. */
  readonly said: readonly string[];
  /** The alarm for too long a silence was raised. */
  readonly stale: boolean;
  /** Our clock minus the partner's, as its last answer had it. */
  readonly skew: Millis | null;
  /** Answers in a row with too large a skew. */
  readonly skewed: number;
}

/** What an attempt came to, as far as health goes. */
export type Attempt =
  | { readonly ok: true; readonly skew: Millis | null }
  /** Not asked: a limit of ours, or a wait that an answer told us, which was heard already. */
  | { readonly ok: false; readonly asked: boolean; readonly reason: string };

/** Something to be said, once. */
export interface Word {
  readonly level: "info" | "warn" | "error";
  readonly words: string;
}

/** Clocks disagree only when two answers running say so: one answer may have been slow (DESIGN 5.7). */
const SKEWED_ANSWERS = 2;

/** Reasons that one outage may give in the log: a partner that words each refusal anew fills no disk (F30). */
const REASONS_OF_AN_OUTAGE = 16;

export const freshHealth = (now: Instant): PartnerHealth => ({
  answeredAt: now,
  everAnswered: false,
  failures: 0,
  lastFailure: null,
  said: [],
  stale: false,
  skew: null,
  skewed: 0,
});

/** The partner after one more attempt, and what changed in it that people should hear: each thing once. */
export function attempted(
  before: PartnerHealth,
  attempt: Attempt,
  now: Instant,
  limits: { readonly staleAfter: Millis; readonly maxSkew: Millis; readonly wallClock: WallClock },
): { readonly health: PartnerHealth; readonly say: readonly Word[] } {
  const say: Word[] = [];
  if (attempt.ok) {
    const skew = attempt.skew ?? 0;
    const skewed = Math.abs(skew) > limits.maxSkew ? before.skewed + 1 : 0;
    if (before.failures > 0) say.push({ level: "info", words: "the partner answers again" });
    else if (!before.everAnswered) say.push({ level: "info", words: "the partner answers" });
    if (skewed === SKEWED_ANSWERS) {
      const off = `${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? "ahead of" : "behind"}`;
      say.push({
        level: "warn",
        words: `our clock is ${off} the partner's: check the time of this machine`,
      });
    }
    return { health: { ...freshHealth(now), everAnswered: true, skew: attempt.skew, skewed }, say };
  }
  const { asked, reason } = attempt;
  const isNews = asked && !before.said.includes(reason) && before.said.length < REASONS_OF_AN_OUTAGE;
  if (isNews) {
    say.push({ level: "warn", words: `the partner cannot be asked: ${reason}; the stored plan goes on` });
  }
  // Later than now it was by a clock that has been set back: the silence counts from then.
  const answeredAt = earlier(before.answeredAt, now);
  const stale = now - answeredAt > limits.staleAfter;
  if (stale && !before.stale) {
    say.push({
      level: "error",
      words: `no answer from the partner since ${limits.wallClock(answeredAt)}: what is known may be out of date`,
    });
  }
  const said = isNews ? [...before.said, reason] : before.said;
  const tried = asked ? { failures: before.failures + 1, lastFailure: reason, said } : {};
  return { health: { ...before, ...tried, answeredAt, stale }, say };
}
