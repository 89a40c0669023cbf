import type { Desired } from "../../domain/setpoint.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type Amperes, amperes, type Instant } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import { telemetryOf, NOTHING_STANDS, without } from "./lastKnownSignals.ts";
import { allowedCurrent, maxCurrent } from "./level.ts";
import { placeholdersIn } from "./render.ts";
import type { Signals } from "./signals.ts";

/** What a charger was told last. */
export interface LastCommand {
  readonly desired: Desired;
  /** What it was told before that; null: nothing by us. */
  readonly before: Desired | null;
}

export const MEASURED = [
  "powerW",
  "energyWh",
  "sessionEnergyWh",
  "currentA",
  "currentsA",
  "voltagesV",
] as const;

/** Without what is measured: what waited at a broker, or was drawn before a command, says nothing of now. */
export const withoutMeasurements = (means: Signals): Signals => without(means, MEASURED);

/**
 * All that stands of what a charger told, for holding it against what it was told. A limit that a charger only repeats
 * counts where it tells no other. Released, many makes limit themselves: then a limit shows only that it is free, but
 * for one that we have raised and that the charger repeats.
 */
export function telemetryFrom(
  standing: Signals,
  told: LastCommand | null,
  bound: ProfileInstance,
  at: Instant,
): Telemetry {
  const { limitA = null, ...all } = telemetryOf(standing, NOTHING_STANDS, bound.electrics.phases, at);
  const isRelease = told?.desired.kind === "release";
  // Given back to a mode of its own, a charger draws what that wants, whatever limit it repeats.
  const isRaised = bound.profile.releaseKeepsLimit && bound.profile.confirmedBy?.release === undefined;
  const raised = isRelease && isRaised ? (standing.requestedA ?? null) : null;
  const limit = raised ?? limitA ?? (isLevel(told?.desired) ? (standing.requestedA ?? null) : null);
  const shows = limit !== null && (!isRelease || raised !== null || showsRelease(limit, told.before, bound));
  return shows ? { ...all, limitA: limit } : all;
}

const isLevel = (desired: Desired | undefined): boolean =>
  desired?.kind === "current" || desired?.kind === "power";

function showsRelease(limit: number, before: Desired | null, bound: ProfileInstance): boolean {
  if (placeholdersIn(bound.profile.actions.release).includes("maxCurrent")) return true;
  const held = before?.kind === "current" ? before.amperes : before?.kind === "pause" ? 0 : Infinity;
  return limit > held;
}

/**
 * The level that a charger shows it stands under, whoever told it; null: it does not show. What it repeats goes before
 * what it allows, which others have a say in; where taking control changes more than the limit, that cannot be put back.
 */
export function shownLevel(standing: Signals, bound: ProfileInstance): Desired | null {
  const { telemetry, actions, releaseKeepsLimit } = bound.profile;
  if (releaseKeepsLimit && (actions.acquire ?? []).length > 0) return null;
  const repeats = telemetry.requestedA !== undefined;
  const level = repeats ? standing.requestedA : standing.limitA;
  if (level === undefined) return null;
  if (level === null) return repeats ? { kind: "release" } : null;
  // What it allows is 0 also when nobody wants to charge.
  if (level === 0 && repeats) return { kind: "pause" };
  if (level >= maxCurrent(bound)) return { kind: "release" };
  return allowedCurrent(level, bound) === null ? null : { kind: "current", amperes: amperes(level) };
}

/** How a make shows that it took a setpoint. */
type Confirmed = NonNullable<ProfileInstance["profile"]["confirmedBy"]>;

/** Where the signal that a profile names was never told, the limit that the charger allows shows it as well. */
const confirmingSignal = ({ signal }: Confirmed, standing: Signals): Confirmed["signal"] =>
  standing[signal] === undefined && typeof standing.limitA === "number" ? "limitA" : signal;

/** Whether a charger shows that it took a command. Null: it would not show, or not yet. */
export function confirmation(desired: Desired, standing: Signals, bound: ProfileInstance): true | null {
  const { confirmedBy } = bound.profile;
  if (confirmedBy === undefined) return null;
  const { tolerance } = confirmedBy;
  const seen = standing[confirmingSignal(confirmedBy, standing)];
  switch (desired.kind) {
    case "current": {
      const asked = allowedCurrent(desired.amperes, bound);
      const same = asked !== null && typeof seen === "number" && Math.abs(seen - asked) <= tolerance + 1e-6;
      return same ? true : null;
    }
    case "power":
      // Told in watts, it repeats no amperes that one could expect.
      return null;
    case "pause":
      return standing.paused === true || seen === 0 ? true : null;
    case "release":
      // Some say that they are paused as long as nobody is there.
      if (standing.paused === true && standing.plugged !== false) return null;
      return seen === null || (typeof seen === "number" && seen >= maxCurrent(bound) - tolerance - 1e-6)
        ? true
        : null;
  }
}

/** Why a level that was not confirmed in time counts as not taken; null: less is allowed, which is no refusal. */
export function doubts(
  level: Amperes,
  confirmedBy: Confirmed,
  standing: Signals,
  bound: ProfileInstance,
): string | null {
  const signal = confirmingSignal(confirmedBy, standing);
  const seen = standing[signal];
  const asked = allowedCurrent(level, bound);
  if (signal === "limitA" && typeof seen === "number" && asked !== null && seen < asked) return null;
  const words = seen === undefined || seen === null ? "it repeats no limit" : `it repeats ${seen} A`;
  return `not confirmed within ${confirmedBy.within / 1000} s, ${words}`;
}

/** The command that a charger was told last, and how it took it. */
export interface Order extends LastCommand {
  readonly id: string;
  /** Everything that was published for it, as one text. */
  readonly wire: string;
  /** All of it is at the broker. */
  arrived: boolean;
  answered: boolean;
}
