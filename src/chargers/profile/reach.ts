import type { Profile } from "./schema.ts";

/** How far the verdict on a setpoint can go with what a make tells. */
export type Reach =
  /** It reports what it draws: followed, or not. */
  | "measured"
  /** It repeats the limit, or says whether it charges: accepted, and a pause can be seen. */
  | "reported"
  /** It says nothing: a setpoint is sent, and that is all one knows. */
  | "sent";

export function reachOf({ telemetry, nativePayloads }: Profile): Reach {
  const tells = (...signals: readonly (keyof typeof telemetry)[]): boolean =>
    signals.some((signal) => telemetry[signal] !== undefined);
  if (nativePayloads || tells("powerW", "currentA", "currentsA")) return "measured";
  return tells("limitA", "requestedA", "charging", "paused", "state") ? "reported" : "sent";
}

/** For people. */
export function reachInWords(reach: Reach): string {
  switch (reach) {
    case "measured":
      return "measured: it reports what it draws, so a setpoint ends as followed or not followed";
    case "reported":
      return "reported: it repeats its limit or state, but not what it draws, so a setpoint ends as accepted";
    case "sent":
      return "sent: it says nothing, so nobody knows whether a setpoint was followed";
  }
}
