import type { Json } from "../../domain/audit.ts";
import { LONGEST_HOLD, type ObservePeriod, periodEnd } from "../../domain/hold.ts";
import { after, earlier, type Instant, iso, seconds } from "../../domain/units.ts";
import type { WallClock } from "../../platform/clock.ts";

/**
 * Why a charger may not be commanded now.
 *
 * - `not leading`: the lease on the site is in doubt or lost. Another process may command it.
 * - `observing`: the mode is observe, by the configuration or for a period. Decisions are recorded and not sent.
 * - `offline`: the charger, or the last will at its broker, reported that it is offline. It gets what holds on return.
 * - `commissioning`: commissioning has the charger, or has not handed it back yet.
 * - `starting up`: the first poll since the start has not ended. It waits 10 s at most.
 * - `clock doubted`: the clock of this machine is behind our own record, and the partner has not confirmed it.
 */
export type Bar = "not leading" | "observing" | "offline" | "commissioning" | StartsBlocked;

/** Bars of the whole site that stop new starts only. */
export type StartsBlocked = "starting up" | "clock doubted";

/** Sentences for people. */
export const BAR_TEXTS: Readonly<Record<Bar, string>> = {
  "not leading": "the lease on the site is in doubt: another process may lead it",
  observing: "mode observe: decided and recorded, not sent",
  offline: "the charger is offline: sent when it returns",
  commissioning: "commissioning has the charger",
  "starting up": "setpointd waits for the first answer of the partner before a new start",
  "clock doubted": "the clock of this machine is in doubt: no new start",
};

/** Bars that stop each step of a command. The first that applies is the answer. */
const BARS = {
  /** A new start of an event. A standing command is still renewed and ended. */
  start: ["starting up", "clock doubted"],
  /** A decision that is stored as one to be sent. With a bar it is stored as observed. */
  plan: ["observing"],
  /** A place in line at the broker of the charger. */
  queue: ["observing", "offline", "commissioning"],
  /** `queue` for the single release that observe mode sends to a charger which was left limited. */
  queueRelease: ["offline", "commissioning"],
  /** The last command before our own stop. Commissioning has ended by then, though its lock may still be there. */
  stop: ["not leading", "observing", "offline"],
  /** The publish, once it is the charger's turn. With a bar it keeps its place; one that is offline by then loses it. */
  publish: ["not leading", "observing", "commissioning"],
  /** `publish` for the release of `queueRelease`. */
  publishRelease: ["not leading", "commissioning"],
  /** A reboot that a person asks for. Unlike a level, it is not kept for later. */
  reboot: ["not leading", "observing", "offline", "commissioning"],
  /** A comparison of telemetry with the setpoint. */
  judge: ["commissioning"],
} as const satisfies Readonly<Record<string, readonly Bar[]>>;

export type GatedStep = keyof typeof BARS;

/** The facts that open or close the gate. */
export interface GateFacts {
  /** The lease on the site is not in doubt. Always true without a database. */
  readonly leads: boolean;
  readonly mode: "drive" | "observe";
  /** Null: new starts are allowed. */
  readonly startsBlockedBy: StartsBlocked | null;
  /** Null: the charger never reported it, or the question is about the whole site. */
  readonly online: boolean | null;
  /** Commissioning has the charger. */
  readonly isLocked: boolean;
}

/** The one place that decides whether a charger may be commanded now. Null: it may. */
export const barTo = (step: GatedStep, facts: GateFacts): Bar | null =>
  BARS[step].find((bar) => applies(bar, facts)) ?? null;

function applies(bar: Bar, { leads, mode, startsBlockedBy, online, isLocked }: GateFacts): boolean {
  switch (bar) {
    case "not leading":
      return !leads;
    case "observing":
      return mode === "observe";
    case "offline":
      return online === false;
    case "commissioning":
      return isLocked;
    case "starting up":
    case "clock doubted":
      return startsBlockedBy === bar;
  }
}

/** Delay of the next try to end a period after a failed commit. */
const RETRY = seconds(5);

/** The mode of the site: as configured, or observe for a period that a person asked for. */
export class SiteMode {
  readonly configured: "drive" | "observe";
  #period: ObservePeriod | null = null;
  #dueAt: Instant | null = null;
  #isObserving = false;

  constructor(configured: "drive" | "observe") {
    this.configured = configured;
  }

  get current(): "drive" | "observe" {
    return this.#isObserving ? "observe" : this.configured;
  }

  /** The period that lasts. Null: the mode is as configured. */
  get period(): ObservePeriod | null {
    return this.#isObserving ? this.#period : null;
  }

  begin(period: ObservePeriod): void {
    this.#period = period;
    this.#dueAt = periodEnd(period);
    this.#isObserving = true;
  }

  end(): void {
    this.#period = null;
    this.#dueAt = null;
    this.#isObserving = false;
  }

  /** Restores the stored period. One that has passed meanwhile does not apply, and its end is recorded at `dueAt`. */
  restore(period: ObservePeriod | null, now: Instant, dueAt: Instant = now): void {
    this.end();
    if (period === null) return;
    // A clock that was ahead opened it: it lasts no longer than a day from now.
    this.begin({ ...period, cap: earlier(period.cap, after(now, LONGEST_HOLD)) });
    if (now < periodEnd(period)) return;
    this.#isObserving = false;
    this.#dueAt = dueAt;
  }

  /** Restores the period after a failed commit. */
  rollBack(stored: ObservePeriod | null, now: Instant): void {
    this.restore(stored, now, after(now, RETRY));
  }

  /** The period whose end has come. Null: none. */
  due(now: Instant): ObservePeriod | null {
    return this.#dueAt !== null && this.#dueAt <= now ? this.#period : null;
  }

  /** The next moment at which time changes the mode. Undefined: none. */
  next(): Instant | undefined {
    return this.#dueAt ?? undefined;
  }
}

/** "mode observe until 06:00:00, by anna: work on the panel". */
export const formatPeriod = (period: ObservePeriod, wallClock: WallClock): string =>
  `mode observe until ${wallClock(periodEnd(period))}, by ${period.by}: ${period.reason}`;

/** A period as the API shows it. */
export const periodFacts = (period: ObservePeriod): { readonly [member: string]: Json } => ({
  since: iso(period.since),
  until: iso(periodEnd(period)),
  by: period.by,
  reason: period.reason,
});
