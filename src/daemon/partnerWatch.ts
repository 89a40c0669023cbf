import type { Logger } from "pino";

import { recordAttempt, freshHealth, type PartnerHealth } from "../control/ingest/partnerHealth.ts";
import type { Delivery, Fetched } from "../domain/delivery.ts";
import { auditRow } from "../domain/audit.ts";
import type { Change } from "../domain/changes.ts";
import { between, type Instant, iso, instant, type Millis, millis } from "../domain/units.ts";
import { aheadOf, type ClockReading, type WallClock } from "../platform/clock.ts";

/** A remote side that may be away. */
export type Neighbour = "partner" | "broker" | `broker ${string}`;

/** Records when the partner, or a broker, was away. A proof shows that beside what was missed. */
export function outages(
  write: (changes: readonly Change[]) => void,
  now: () => Instant,
  wallClock: WallClock,
) {
  const gone = new Map<Neighbour, Instant>();
  return {
    /** `since`: its last sign of life. Recorded once. */
    gone(who: Neighbour, since: Instant): void {
      if (gone.has(who)) return;
      gone.set(who, since);
      write([row(who, now(), `the ${who} is away since ${wallClock(since)}`, since, false)]);
    },

    /** Last sign of life of a side that is away. Null: not known to be away. */
    awaySince: (who: Neighbour): Instant | null => gone.get(who) ?? null,

    /** Records nothing if it was not away. */
    back(who: Neighbour): void {
      const since = gone.get(who);
      if (since === undefined) return;
      gone.delete(who);
      const seconds = Math.round(between(since, now()) / 1000);
      write([row(who, now(), `the ${who} is there again after ${seconds} s`, since, true)]);
    },
  };
}

const row = (who: Neighbour, at: Instant, message: string, since: Instant, over: boolean): Change =>
  auditRow("silence", at, message, { facts: { outage: who, since: iso(since), ...(over ? { over } : {}) } });

export interface PartnerWatchOptions {
  /** Time of the site clock. */
  readonly now: () => Instant;
  /** Clock of this machine, believed or not. */
  readonly wall: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => number;
  readonly isClockDoubted: () => boolean;
  readonly staleAfter: Millis;
  /** Further apart than this, our clock and the partner's do not agree. */
  readonly maxSkew: Millis;
  /** The site's. */
  readonly wallClock: WallClock;
  readonly away: Pick<ReturnType<typeof outages>, "gone" | "back">;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Called when an answer of the partner agrees with the clock of this machine. */
  readonly onClockAgrees: () => void;
}

/** Last contact with the partner since the start, each way. Null: none yet. */
export interface PartnerContact {
  /** Arrival of the last webhook delivery. */
  readonly webhookAt: Instant | null;
  /** Last usable answer to a request for the list. */
  readonly polledAt: Instant | null;
}

/** Health and clock of the partner, as its answers show them. */
export class PartnerWatch {
  readonly #options: PartnerWatchOptions;
  #health: PartnerHealth;
  /** The partner's clock at its last answer. */
  #clock: ClockReading | null = null;
  #contact: PartnerContact = { webhookAt: null, polledAt: null };

  constructor(options: PartnerWatchOptions) {
    this.#options = options;
    this.#health = freshHealth(options.now());
  }

  get health(): PartnerHealth {
    return this.#health;
  }

  get contact(): PartnerContact {
    return this.#contact;
  }

  get isUp(): boolean {
    return this.#health.everAnswered && this.#health.failures === 0;
  }

  /** True: the partner's clock confirms ours. An answer without a date confirms nothing. */
  get clockAgrees(): boolean {
    return !this.#options.isClockDoubted() && this.#health.failures === 0 && this.#isWithin();
  }

  /** Lead of our clock over the partner's. Zero: within tolerance, or unknown. */
  ahead(): Millis {
    const { now, monotonic, maxSkew } = this.#options;
    return aheadOf(this.#clock, { wall: now(), monotonic: millis(monotonic()) }, maxSkew);
  }

  /** Call with every delivery that arrives without a request. */
  onDelivery({ source, at }: Pick<Delivery, "source" | "at">): void {
    if (source === "webhook") this.#contact = { ...this.#contact, webhookAt: at };
  }

  /** Call with every answer. Returns the answer. */
  onAnswer(answer: Fetched): Fetched {
    const { now, monotonic, staleAfter, maxSkew, wallClock, away, log, onClockAgrees } = this.#options;
    const attempt =
      answer.kind === "failed"
        ? ({ ok: false, asked: answer.asked, reason: answer.reason } as const)
        : ({ ok: true, skew: this.#wallSkew(answer.skew) } as const);
    const { health, messages } = recordAttempt(this.#health, attempt, now(), {
      staleAfter,
      maxSkew,
      wallClock,
    });
    this.#health = health;
    if (isList(answer)) this.#contact = { ...this.#contact, polledAt: now() };
    if (answer.kind !== "failed" && answer.skew !== null)
      this.#clock = { wall: instant(now() - answer.skew), monotonic: millis(monotonic()) };
    if (attempt.ok) away.back("partner");
    // A single request may always get lost.
    else if (health.failures > 1) away.gone("partner", health.answeredAt);
    for (const { level, message } of messages) log[level](message);
    if (attempt.ok && this.#isWithin()) onClockAgrees();
    return answer;
  }

  /** Skew of the clock of this machine, not of the site clock. */
  #wallSkew(skew: Millis | null): Millis | null {
    const { wall, now } = this.#options;
    return skew === null ? null : millis(skew - between(wall(), now()));
  }

  #isWithin(): boolean {
    const { skew } = this.#health;
    return skew !== null && Math.abs(skew) <= this.#options.maxSkew;
  }
}

/** True: a usable answer to a request for the list. */
const isList = (answer: Fetched): boolean =>
  answer.kind === "unchanged" || (answer.kind === "read" && answer.delivery.source === "list");
