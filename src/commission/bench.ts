import type { Sent } from "../core/control/command.ts";
import type { Desired } from "../core/control/setpoint.ts";
import type { Telemetry } from "../core/site/telemetry.ts";
import type { Instant, Millis } from "../core/units.ts";

/** How a charger took the last order. */
export interface Taken {
  readonly accepted: boolean;
  /** Its own words; null: it gave none. */
  readonly reason: string | null;
  readonly at: Instant;
}

/** One charger with nobody else talking to it. In the tests time is virtual behind it. */
export interface Bench {
  readonly now: () => Instant;
  /** For `lease` at most, where the charger knows leases. Ok: the broker has all of it. */
  readonly order: (desired: Desired, lease: Millis) => Promise<Sent>;
  /** Null: it has not answered the last order. */
  readonly taken: () => Taken | null;
  /** Whether it has sent anything at all. */
  readonly heard: () => boolean;
  /** All that it has told, the newest of each; null: nothing yet. */
  readonly told: () => Telemetry | null;
  /** Nothing is said any more that would keep it obeying; what it says is still heard. */
  readonly fallSilent: () => void;
  /** Until the condition holds; false: patience has run out, or `stop` was asked. */
  readonly until: (condition: () => boolean, patience: Millis) => Promise<boolean>;
  /** Lets so much time pass, Ctrl-C or not. */
  readonly rest: (span: Millis) => Promise<void>;
  /** Somebody pressed Ctrl-C, or it is taken away: what is under way is cut short. */
  readonly isStopped: () => boolean;
  /** Why control has taken the charger for itself: it is told nothing more. Null: it has not. */
  readonly takenFor: () => string | null;
}
