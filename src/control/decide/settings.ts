import type { Millis } from "../../domain/units.ts";
import type { JudgeSettings } from "../observe/compliance.ts";

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
