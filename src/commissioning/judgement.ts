import { complianceWith, type JudgeSettings } from "../control/observe/compliance.ts";
import type { Charger } from "../domain/charger.ts";
import type { Setpoint } from "../domain/setpoint.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { amperes, watts } from "../domain/units.ts";

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

/** What a level did, as far as the charger tells. */
export type Effect =
  | { readonly kind: "followed" }
  | { readonly kind: "notFollowed" }
  /** Why it cannot be measured. */
  | { readonly kind: "unmeasured"; readonly why: string };

/** Below this nothing charges: standby electronics draw less. */
const CHARGING_A = 0.5;

/** W for one A on all of its phases. */
const wattsPerAmpere = ({ phases, voltage }: Charger): number => phases * voltage;

/** A per phase: the largest phase, or what the power comes to; null: it does not tell. */
export function drawnBy(told: Telemetry | null, charger: Charger): number | null {
  const { currentsA = [], powerW } = told ?? {};
  if (currentsA.length > 0) return Math.max(...currentsA);
  return powerW === undefined ? null : powerW / wattsPerAmpere(charger);
}

/** The level in A per phase. */
const amperesOf = (level: Setpoint, charger: Charger): number =>
  level.kind === "current" ? level.amperes : level.watts / wattsPerAmpere(charger);

/** Judged as the daemon judges a command, but a charger that draws nothing proves nothing. */
export function effectOf(
  level: Setpoint,
  told: Telemetry | null,
  charger: Charger,
  settings: JudgeSettings,
): Effect {
  const drawn = drawnBy(told, charger);
  if (told === null) return { kind: "unmeasured", why: "it told nothing" };
  const { kind } = complianceWith(level, null, told, charger, null, settings);
  if (kind === "notFollowed") return { kind };
  if (drawn === null) return { kind: "unmeasured", why: "it does not tell what it draws" };
  if (told.state === "unplugged") return { kind: "unmeasured", why: "nothing is plugged in" };
  return drawn < CHARGING_A ? { kind: "unmeasured", why: "it draws nothing" } : { kind: "followed" };
}

/** Whether it draws what it may: the vehicle has followed up or down, and there is nothing more to wait for. */
export function hasArrived(
  level: Setpoint,
  told: Telemetry | null,
  charger: Charger,
  settings: JudgeSettings,
): boolean {
  const [drawn, most] = [drawnBy(told, charger), amperesOf(level, charger)];
  return (
    drawn !== null && Math.abs(drawn - most) <= Math.max(settings.amperes, (most * settings.percent) / 100)
  );
}

export type SilenceEffect = "holds" | "pauses" | "own limits" | "unmeasured";

/** What a charger does with a level that nobody repeats. */
export function afterSilence(
  level: Setpoint,
  told: Telemetry | null,
  charger: Charger,
  settings: JudgeSettings,
): SilenceEffect {
  const drawn = drawnBy(told, charger);
  if (told === null || (drawn === null && told.limitA === undefined)) return "unmeasured";
  const most = amperesOf(level, charger);
  const seen = Math.max(drawn ?? 0, told.limitA ?? 0);
  if (seen > most + Math.max(settings.amperes, (most * settings.percent) / 100)) return "own limits";
  if (told.limitA === 0 || told.state === "paused") return "pauses";
  // Who drew nothing before cannot be seen to stop.
  if (drawn !== null && drawn < CHARGING_A) return told.state === "unplugged" ? "unmeasured" : "pauses";
  return "holds";
}
