import type { Committed } from "../domain/changes.ts";
import type { Command, Sent } from "../domain/command.ts";
import type { Delivery, Fetched, IngestAnswer } from "../domain/delivery.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { Store } from "../domain/store.ts";
import type { ChargerId, EventId, Instant, Millis } from "../domain/units.ts";
import type { JudgeSettings } from "./observe/compliance.ts";

/** Settings that decide the setpoints of chargers. */
export interface ControlSettings {
  /** `observe`: decide, log and explain everything, publish no command. */
  readonly mode: "drive" | "observe";
  /** Action of a start in observe mode on chargers that a run in drive mode left limited. */
  readonly onObserve: "release" | "keep";
  readonly powerUnit: "kW" | "W";
  readonly priority: "lower" | "higher";
  readonly priorityZero: "highest" | "unset";
  readonly ties: "newest" | "mostRestrictive";
  readonly randomizedEnd: "shift" | "clip";
  readonly untargeted: "ignore" | "all";
  /** Folded to lower case. */
  readonly vehicleTargetTypes: readonly string[];
  /** The partner's account is that of many sites: a vehicle that is not ours is one of theirs. Absent: a mistake is likely. */
  readonly sharesAccount?: true;
  /** Interval of refreshes. The lease is three times as long. */
  readonly refresh: Millis;
  /** A charger without a message for this long counts as unreachable. */
  readonly silentAfter: Millis;
  readonly verdict: JudgeSettings;
  /** Fastest increase of the whole site. Null: no limit. */
  readonly releaseRamp: RampSettings | null;
}

/** Fastest increase of the whole site: A per phase or W, a minute. */
export interface RampSettings {
  readonly unit: "A" | "W";
  readonly perMinute: number;
}

/** A delivery to ingest. It is settled after its commit. */
export interface Arrival {
  readonly delivery: Delivery;
  /** More parts of the same list follow. Chargers are evaluated after the last part. */
  readonly isPart?: boolean;
  readonly settle: (answer: IngestAnswer) => void;
}

/** Chargers that an operator frees. Settled after the commit. */
export interface Freeing {
  readonly chargers: readonly ChargerId[];
  readonly by: string;
  readonly settle: (committed: Committed) => void;
}

/** The chargers as control and reporting see them. */
export interface ChargerSender {
  /**
   * Publishes one command, each publish with its deadline. Never throws.
   * `before`: our last setpoint. `isDoubted`: the charger did not follow this command.
   */
  readonly send: (
    command: Command,
    lease: Millis,
    before: Desired | null,
    isDoubted: boolean,
  ) => Promise<Sent>;
  readonly publishState: (charger: ChargerId, payload: string) => Promise<Sent>;
  /** True: the broker of the charger is connected, so that a silence is the charger's own. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** Publishes that may be in flight now to the broker of this name. It changes with the broker's speed. */
  readonly windowOf: (broker: string) => number;
  /** Settled after the first attempt to connect: what chargers left retained there is known by then. Absent: no wait. */
  readonly firstAttempt?: (broker: string) => Promise<void> | undefined;
  /** Pauses the keepalives that keep chargers obeying, or resumes them. */
  readonly observe: (isObserving: boolean) => void;
}

/** The edges as the control pipeline sees them: functions only. */
export interface ControlPorts extends ChargerSender, Pick<Store, "write" | "writeUntilStored" | "durable"> {
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => Millis;
  /** In [0, 1). */
  readonly random: () => number;
  /** Events that only a fetch by id can settle. */
  readonly fetchById: (ids: readonly EventId[]) => void;
  /** Reports the delay between a start and its evaluation. */
  readonly started: (lateBy: Millis) => void;
  /** Reports an evaluation, for the health check. */
  readonly evaluated: () => void;
  /** Logs a warning that changes nothing. */
  readonly warn: (message: string) => void;
}

export interface PollingPorts {
  /** Monotonic clock, ms. */
  readonly monotonic: () => Millis;
  readonly random: () => number;
  /** `isRequested`: an operator asked for it. Skips our own back-off after an outage. */
  readonly list: (isRequested: boolean) => Promise<Fetched>;
  readonly event: (id: EventId) => Promise<Fetched>;
  /** Requests a list early where `list` waits for the next one. Absent: `list` requests one. */
  readonly wantList?: () => void;
}
