import type { Millis } from "../../domain/units.ts";
import type { JudgeSettings } from "../observe/compliance.ts";

/** The knobs of DESIGN 5.3 to 5.7 that decide what a charger is told. */
export interface ControlSettings {
  /** observe: decide, log and explain everything, publish no command. */
  readonly mode: "drive" | "observe";
  /** What a start in observe does with chargers that a run in drive left limited. */
  readonly onObserve: "release" | "keep";
  readonly powerUnit: "kW" | "W";
  readonly priority: "lower" | "higher";
  readonly priorityZero: "highest" | "unset";
  readonly ties: "newest" | "mostRestrictive";
  readonly randomizedEnd: "shift" | "clip";
  readonly untargeted: "ignore" | "all";
  /** Folded to lower case. */
  readonly vehicleTargetTypes: readonly string[];
  /** How often a standing command is sent again; its lease is three times this. */
  readonly refresh: Millis;
  /** A charger that was not heard of for so long counts as unreachable. */
  readonly silentAfter: Millis;
  readonly verdict: JudgeSettings;
  /** How fast the levels of the site may rise together; null: at once. */
  readonly releaseRamp: RampSettings | null;
}

/** How fast the levels of the site may rise together: A per phase or W, a minute. */
export interface RampSettings {
  readonly unit: "A" | "W";
  readonly perMinute: number;
}
