import { type Command, commandId } from "../../domain/command.ts";
import type { Desired } from "../../domain/setpoint.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type Amperes, amperes, type Instant } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import { telemetryOf, NOTHING_STANDS, without } from "./lastKnownSignals.ts";
import { allowedCurrent, maxCurrent } from "./level.ts";
import type { Publish } from "./publishes.ts";
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
  signals: Signals,
  told: LastCommand | null,
  instance: ProfileInstance,
  at: Instant,
): Telemetry {
  const { limitA = null, ...all } = telemetryOf(signals, NOTHING_STANDS, instance.electrics.phases, at);
  const isRelease = told?.desired.kind === "release";
  // Given back to a mode of its own, a charger draws what that wants, whatever limit it repeats.
  const isRaised = instance.profile.releaseKeepsLimit && instance.profile.confirmedBy?.release === undefined;
  const raised = isRelease && isRaised ? (signals.requestedA ?? null) : null;
  const limit = raised ?? limitA ?? (isLevel(told?.desired) ? (signals.requestedA ?? null) : null);
  const shows =
    limit !== null && (!isRelease || raised !== null || showsRelease(limit, told.before, instance));
  return shows ? { ...all, limitA: limit } : all;
}

const isLevel = (desired: Desired | undefined): boolean =>
  desired?.kind === "current" || desired?.kind === "power";

function showsRelease(limit: number, before: Desired | null, instance: ProfileInstance): boolean {
  if (placeholdersIn(instance.profile.actions.release).includes("maxCurrent")) return true;
  const held = before?.kind === "current" ? before.amperes : before?.kind === "pause" ? 0 : Infinity;
  return limit > held;
}

/**
 * The level that a charger shows it stands under, whoever told it; null: it does not show. What it repeats goes before
 * what it allows, which others have a say in; where taking control changes more than the limit, that cannot be put back.
 */
export function shownLevel(signals: Signals, instance: ProfileInstance): Desired | null {
  const { telemetry, actions, releaseKeepsLimit } = instance.profile;
  if (releaseKeepsLimit && (actions.acquire ?? []).length > 0) return null;
  const repeats = telemetry.requestedA !== undefined;
  const level = repeats ? signals.requestedA : signals.limitA;
  if (level === undefined) return null;
  if (level === null) return repeats ? { kind: "release" } : null;
  // What it allows is 0 also when nobody wants to charge.
  if (level === 0 && repeats) return { kind: "pause" };
  if (level >= maxCurrent(instance)) return { kind: "release" };
  return allowedCurrent(level, instance) === null ? null : { kind: "current", amperes: amperes(level) };
}

/** How a make shows that it took a setpoint. */
type Confirmed = NonNullable<ProfileInstance["profile"]["confirmedBy"]>;

/** Where the signal that a profile names was never told, the limit that the charger allows shows it as well. */
const confirmingSignal = ({ signal }: Confirmed, signals: Signals): Confirmed["signal"] =>
  signals[signal] === undefined && typeof signals.limitA === "number" ? "limitA" : signal;

/** Whether a charger shows that it took a command. Null: it would not show, or not yet. */
export function confirmation(desired: Desired, signals: Signals, instance: ProfileInstance): true | null {
  const { confirmedBy } = instance.profile;
  if (confirmedBy === undefined) return null;
  const { tolerance } = confirmedBy;
  const seen = signals[confirmingSignal(confirmedBy, signals)];
  switch (desired.kind) {
    case "current": {
      const asked = allowedCurrent(desired.amperes, instance);
      const same = asked !== null && typeof seen === "number" && Math.abs(seen - asked) <= tolerance + 1e-6;
      return same ? true : null;
    }
    case "power":
      // Told in watts, it repeats no amperes that one could expect.
      return null;
    case "pause":
      return signals.paused === true || seen === 0 ? true : null;
    case "release":
      // Some say that they are paused as long as nobody is there.
      if (signals.paused === true && signals.plugged !== false) return null;
      return seen === null || (typeof seen === "number" && seen >= maxCurrent(instance) - tolerance - 1e-6)
        ? true
        : null;
  }
}

/** Why a level that was not confirmed in time counts as not taken; null: less is allowed, which is no refusal. */
export function doubts(
  level: Amperes,
  confirmedBy: Confirmed,
  signals: Signals,
  instance: ProfileInstance,
): string | null {
  const signal = confirmingSignal(confirmedBy, signals);
  const seen = signals[signal];
  const asked = allowedCurrent(level, instance);
  if (signal === "limitA" && typeof seen === "number" && asked !== null && seen < asked) return null;
  const words = seen === undefined || seen === null ? "it repeats no limit" : `it repeats ${seen} A`;
  return `not confirmed within ${confirmedBy.within / 1000} s, ${words}`;
}

/**
 * The life of an order. Each new command starts one; the refresh of a command goes on with its order.
 *
 * ```
 *                 the broker has every publish
 *    publishing --------------------------------> published
 *        |                                            |
 *        | the charger accepts                        | the charger accepts
 *        v                                            v
 *   acceptedEarly ------------------------------> accepted
 *                 the broker has every publish
 * ```
 *
 * A refusal leaves the stage as it is: the next refresh may still be accepted.
 * An order that is only published when a charger becomes ready was lost, and is asked for again.
 */
export type OrderStage = "publishing" | "published" | "acceptedEarly" | "accepted";

export const isPublished = (stage: OrderStage): boolean => stage === "published" || stage === "accepted";

export const isAccepted = (stage: OrderStage): boolean => stage === "acceptedEarly" || stage === "accepted";

/** The broker has every publish of the order. */
export const whenPublished = (stage: OrderStage): OrderStage =>
  isAccepted(stage) ? "accepted" : "published";

/** The charger answered yes, or shows the setpoint. */
export const whenAccepted = (stage: OrderStage): OrderStage =>
  isPublished(stage) ? "accepted" : "acceptedEarly";

/** The last command of a charger, and how far it got. */
export interface Order extends LastCommand {
  readonly id: string;
  /** Everything that was published for it, as one text. */
  readonly wire: string;
  stage: OrderStage;
}

export interface Started {
  readonly order: Order;
  /** The charger obeys exactly this already, and each write wears its memory. */
  readonly isNeedless: boolean;
}

/** The order of a command: a new one, or `last` again at a refresh. `canSkip`: a repetition need not be published. */
export function startOrder(
  last: Order | null,
  command: Command,
  before: Desired | null,
  publishes: readonly Publish[],
  canSkip: boolean,
): Started {
  const id = commandId(command);
  if (last !== null && last.id === id) return { order: last, isNeedless: false };
  const wire = JSON.stringify(publishes);
  const isRepeat = last !== null && isPublished(last.stage) && last.wire === wire;
  return {
    order: { id, desired: command.desired, before, wire, stage: "publishing" },
    isNeedless: canSkip && isRepeat,
  };
}
