import { type Millis, minutes, seconds } from "../domain/units.ts";

/** Settings of reports. The contract leaves the meaning of its counts open (openadr3 1.5): each setting is a choice. */
export interface ReportSettings {
  /**
   * Division of an event into report intervals.
   * `auto`: equal parts that the requested reports fill exactly. `event`: the whole event.
   * `implied`: steps as long as the event. `fixed`: steps of `subInterval`.
   * `frequencySeconds`, `frequencyMinutes`: `frequency` is a time.
   */
  readonly mode: "auto" | "event" | "implied" | "fixed" | "frequencySeconds" | "frequencyMinutes";
  /** Step where the partner names none: 15 min. */
  readonly subInterval: Millis;
  /** No interval is shorter, unless the event is: 1 min. */
  readonly minInterval: Millis;
  /** Most intervals in one report, and most reports planned ahead: 96. */
  readonly maxIntervals: number;
  /** Waited for late readings after the end of what is reported: 30 s. */
  readonly settleDelay: Millis;
  /** Reports that were due before their event arrived: only the latest is sent, all, or none. */
  readonly catchUp: "latest" | "all" | "none";
  /** True: `repeat: -1` goes on after the end of the event. Default: false. */
  readonly continueAfterEvent: boolean;
  /** Reports of a withdrawn event: none, or the part until the withdrawal. */
  readonly onCancel: "none" | "partial";
  /** Source of forecasts: the planned setpoints, or none (then MISSING). */
  readonly forecastSource: "setpoint" | "none";
  /** Number that stands for 100 %. The texts of the standard contradict each other. Default: 100. */
  readonly percentScale: 100 | 1;
  /** Comparable days in a baseline: 10. */
  readonly baselineDays: number;
  /** A reading holds for this long at most. Longer silence is a gap: 5 min. */
  readonly maxGap: Millis;
}

export const REPORT_DEFAULTS: ReportSettings = {
  mode: "auto",
  subInterval: minutes(15),
  minInterval: minutes(1),
  maxIntervals: 96,
  settleDelay: seconds(30),
  catchUp: "latest",
  continueAfterEvent: false,
  onCancel: "none",
  forecastSource: "setpoint",
  percentScale: 100,
  baselineDays: 10,
  maxGap: minutes(5),
};
