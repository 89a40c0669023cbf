import type { Setpoint } from "../core/control/setpoint.ts";
import type { Charger } from "../core/site/charger.ts";
import { amperes, watts } from "../core/units.ts";

/** No fewer than what IEC 61851 lets anything charge with, where the configuration says nothing. */
const USUAL_MINIMUM_A = 6;

/** What a charger is tried with: its maximum, the middle and its minimum, whole A or W, each once; falling, so that it can only do as it is told. */
export function trialLevels({ minCurrent, maxCurrent, minPower, maxPower }: Charger): readonly Setpoint[] {
  if (maxCurrent !== null)
    return between(minCurrent || USUAL_MINIMUM_A, maxCurrent).map((level) => ({
      kind: "current",
      amperes: amperes(level),
    }));
  if (maxPower === null) return [];
  return between(minPower ?? 0, maxPower).map((level) => ({ kind: "power", watts: watts(level) }));
}

function between(min: number, max: number): readonly number[] {
  const least = Math.min(Math.ceil(min), max);
  const middle = Math.floor((least + max) / 2);
  // A level of 0 would be a pause.
  return [...new Set([max, middle, least])].filter((level) => level > 0);
}
