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

/** Which bars stop which step of a command. The first that applies is the answer. */
const BARS = {
  /** A new start of an event. A standing command is renewed and ended all the same. */
  start: ["starting up", "clock doubted"],
  /** A decision that is stored as one to be sent. With a bar it is stored as observed. */
  plan: ["observing"],
  /** A place in line at the broker of the charger. */
  queue: ["observing", "offline", "commissioning"],
  /** As `queue`, for the single release that observe mode sends to a charger which was left limited. */
  queueRelease: ["offline", "commissioning"],
  /** The last command before our own stop. Commissioning has ended by then, though its lock may still be there. */
  stop: ["not leading", "observing", "offline"],
  /** The publish, once it is the charger's turn. A charger that went offline while it waited gets it all the same. */
  publish: ["not leading", "observing", "commissioning"],
  /** As `publish`, for the release of `queueRelease`. */
  publishRelease: ["not leading", "commissioning"],
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
