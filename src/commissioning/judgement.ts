import { complianceWith, type JudgeSettings } from "../control/observe/compliance.ts";
import type { Charger } from "../domain/charger.ts";
import type { Setpoint } from "../domain/setpoint.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { amperes, watts } from "../domain/units.ts";

/** Minimum of IEC 61851, where the configuration has none. */
const USUAL_MINIMUM_A = 6;

/**
 * Levels of a trial: maximum, middle and minimum, in whole A or W, each once. They fall, so an old level
 * cannot pass for a new one.
 */
export function trialLevels({ minCurrent, maxCurrent, minPower, maxPower }: Charger): readonly Setpoint[] {
  if (maxCurrent !== null)
    return levelsBetween(minCurrent || USUAL_MINIMUM_A, maxCurrent).map((level) => ({
      kind: "current",
      amperes: amperes(level),
    }));
  if (maxPower === null) return [];
  return levelsBetween(minPower ?? 0, maxPower).map((level) => ({ kind: "power", watts: watts(level) }));
}

function levelsBetween(min: number, max: number): readonly number[] {
  const least = Math.min(Math.ceil(min), max);
  const middle = Math.floor((least + max) / 2);
  // A level of 0 would be a pause.
  return [...new Set([max, middle, least])].filter((level) => level > 0);
}

/** Effect of a level, as far as the charger reports it. */
export type Effect =
  | { readonly kind: "followed" }
  | { readonly kind: "notFollowed" }
  /** Reason why it cannot be measured. */
  | { readonly kind: "unmeasured"; readonly why: string };

/** Least current of a charging vehicle, A. Standby electronics draw less. */
const CHARGING_A = 0.5;

/** W for one A on all phases. */
const wattsPerAmpere = ({ phases, voltage }: Charger): number => phases * voltage;

/** A per phase: the largest phase, or the current for the power. Null: not reported. */
export function drawnBy(telemetry: Telemetry | null, charger: Charger): number | null {
  const { currentsA = [], powerW } = telemetry ?? {};
  if (currentsA.length > 0) return Math.max(...currentsA);
  return powerW === undefined ? null : powerW / wattsPerAmpere(charger);
}

/** The level in A per phase. */
const amperesOf = (level: Setpoint, charger: Charger): number =>
  level.kind === "current" ? level.amperes : level.watts / wattsPerAmpere(charger);

/** Judged like a command of the daemon. A charger that draws nothing proves nothing. */
export function effectOf(
  level: Setpoint,
  telemetry: Telemetry | null,
  charger: Charger,
  settings: JudgeSettings,
): Effect {
  const drawn = drawnBy(telemetry, charger);
  if (telemetry === null) return { kind: "unmeasured", why: "no telemetry" };
  const { kind } = complianceWith({ desired: level }, telemetry, { charger, vehicle: null }, settings);
  if (kind === "notFollowed") return { kind };
  if (drawn === null) return { kind: "unmeasured", why: "it reports neither power nor current" };
  if (telemetry.state === "unplugged") return { kind: "unmeasured", why: "nothing is plugged in" };
  return drawn < CHARGING_A ? { kind: "unmeasured", why: "it draws nothing" } : { kind: "followed" };
}

/** True: the current has reached the level, from above or below. */
export function hasArrived(
  level: Setpoint,
  telemetry: Telemetry | null,
  charger: Charger,
  settings: JudgeSettings,
): boolean {
  const [drawn, most] = [drawnBy(telemetry, charger), amperesOf(level, charger)];
  return (
    drawn !== null && Math.abs(drawn - most) <= Math.max(settings.amperes, (most * settings.percent) / 100)
  );
}

export type SilenceEffect = "holds" | "pauses" | "own limits" | "unmeasured";

/** The behaviour of a charger whose level is not repeated. */
export function afterSilence(
  level: Setpoint,
  telemetry: Telemetry | null,
  charger: Charger,
  settings: JudgeSettings,
): SilenceEffect {
  const drawn = drawnBy(telemetry, charger);
  if (telemetry === null || (drawn === null && telemetry.limitA === undefined)) return "unmeasured";
  const most = amperesOf(level, charger);
  const seen = Math.max(drawn ?? 0, telemetry.limitA ?? 0);
  if (seen > most + Math.max(settings.amperes, (most * settings.percent) / 100)) return "own limits";
  if (telemetry.limitA === 0 || telemetry.state === "paused") return "pauses";
  // A stop is visible only if current was drawn before.
  if (drawn !== null && drawn < CHARGING_A) return telemetry.state === "unplugged" ? "unmeasured" : "pauses";
  return "holds";
}
