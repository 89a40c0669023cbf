import { type Command, commandId } from "../../domain/command.ts";
import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type Amperes, amperes, type Instant } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import { type LastKnownSignals, telemetryOf, NOTHING_STANDS, without } from "./lastKnownSignals.ts";
import { allowedCurrent, maxCurrent } from "./level.ts";
import type { Ordered } from "./orders.ts";
import { placeholdersIn } from "./render.ts";
import type { Signals } from "./signals.ts";

/** The last command of a charger. */
export interface LastCommand {
  readonly desired: Desired;
  /** The command before it. Null: none of ours. */
  readonly before: Desired | null;
  /** The command is to end a pause of ours, also one of several commands ago whose end the charger never accepted. */
  readonly endsPause: boolean;
}

export const MEASURED = [
  "powerW",
  "energyWh",
  "sessionEnergyWh",
  "currentA",
  "currentsA",
  "voltagesV",
] as const;

/** Without measurements. A retained one, or one from before a command, is not current. */
export const withoutMeasurements = (signals: Signals): Signals => without(signals, MEASURED);

/** True: the charger has started since its last report of its own starts. */
export const hasRestarted = ({ reported: { bootCount: before } }: LastKnownSignals, next: Signals): boolean =>
  typeof before === "number" && typeof next.bootCount === "number" && next.bootCount !== before;

/**
 * Current telemetry, for comparison with the command. A repeated limit counts if the charger reports no
 * other limit. After a release many makes apply a limit of their own, so a limit shows only that the
 * charger is free. Exception: a limit that we raised and that the charger repeats.
 */
export function telemetryFrom(
  signals: Signals,
  last: LastCommand | null,
  instance: ProfileInstance,
  at: Instant,
): Telemetry {
  const { limitA = null, ...all } = telemetryOf(signals, NOTHING_STANDS, instance.electrics.phases, at);
  const isRelease = last?.desired.kind === "release";
  // In a mode of its own the charger draws what that mode wants, whatever limit it repeats.
  const isRaised = instance.profile.releaseKeepsLimit && instance.profile.confirmedBy?.release === undefined;
  const isDoubtful = isRelease && mayStillBePaused(last.before, signals);
  const raised = isRelease && isRaised && !isDoubtful ? (signals.requestedA ?? null) : null;
  const limit = raised ?? limitA ?? (isLevel(last?.desired) ? (signals.requestedA ?? null) : null);
  const shows =
    limit !== null && (!isRelease || raised !== null || showsRelease(limit, last.before, instance));
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
 * The level that a charger shows, set by anyone. Null: it shows none. The repeated limit goes before the
 * allowed limit, which others influence. Null also where taking control changes more than the limit: a
 * level alone would not restore that.
 */
export function shownLevel(signals: Signals, instance: ProfileInstance): Desired | null {
  const { telemetry, actions, releaseKeepsLimit } = instance.profile;
  if (releaseKeepsLimit && (actions.acquire ?? []).length > 0) return null;
  const repeats = telemetry.requestedA !== undefined;
  const level = repeats ? signals.requestedA : signals.limitA;
  if (level === undefined) return null;
  if (level === null) return repeats ? { kind: "release" } : null;
  // The allowed limit is also 0 while no vehicle wants to charge.
  if (level === 0 && repeats) return { kind: "pause" };
  if (level >= maxCurrent(instance)) return { kind: "release" };
  return allowedCurrent(level, instance) === null ? null : { kind: "current", amperes: amperes(level) };
}

/** The rule by which a profile confirms a setpoint. */
type Confirmed = NonNullable<ProfileInstance["profile"]["confirmedBy"]>;

/** The allowed limit confirms as well if the signal of the profile was never reported. */
const confirmingSignal = ({ signal }: Confirmed, signals: Signals): Confirmed["signal"] =>
  signals[signal] === undefined && typeof signals.limitA === "number" ? "limitA" : signal;

/**
 * True: a release may not have ended a pause. Some chargers report a pause while no vehicle is plugged in, which is no
 * doubt unless the release was to end one: a limit that was kept through that pause shows nothing.
 */
const mayStillBePaused = (before: Desired | null, { paused, plugged }: Signals): boolean =>
  paused === true && (plugged !== false || before?.kind === "pause");

/** True: a level was to end a pause, and the charger reports the pause. Many keep the level through it. */
export const keepsPause = (endsPause: boolean, { paused }: Signals): boolean => endsPause && paused === true;

/**
 * True: a release was to restore all phases, and the charger reports one, or nothing since its return. A restart may have
 * ended the limit alone.
 */
function keepsOnePhase(before: Desired | null, { phases }: Signals, { profile }: ProfileInstance): boolean {
  if (before === null || switchedIn(before)?.count !== 1) return false;
  return phases === 1 || (phases === undefined && profile.telemetry.phases !== undefined);
}

/** True: the charger repeats this level. */
export function repeatsLevel(
  level: Amperes,
  confirmedBy: Confirmed,
  signals: Signals,
  instance: ProfileInstance,
): boolean {
  const [asked, seen] = [allowedCurrent(level, instance), signals[confirmingSignal(confirmedBy, signals)]];
  return asked !== null && typeof seen === "number" && Math.abs(seen - asked) <= confirmedBy.tolerance + 1e-6;
}

/** True: the charger shows the command. Null: it does not show it, or not yet. */
export function confirmation(
  { desired, before, endsPause }: LastCommand,
  signals: Signals,
  instance: ProfileInstance,
): true | null {
  const { confirmedBy } = instance.profile;
  if (confirmedBy === undefined) return null;
  const { tolerance } = confirmedBy;
  const seen = signals[confirmingSignal(confirmedBy, signals)];
  switch (desired.kind) {
    case "current":
      return repeatsLevel(desired.amperes, confirmedBy, signals, instance) && !keepsPause(endsPause, signals)
        ? true
        : null;
    case "power":
      // A command in watts has no expected value in amperes.
      return null;
    case "pause":
      return signals.paused === true || seen === 0 ? true : null;
    case "release":
      if (mayStillBePaused(before, signals) || keepsOnePhase(before, signals, instance)) return null;
      return seen === null || (typeof seen === "number" && seen >= maxCurrent(instance) - tolerance - 1e-6)
        ? true
        : null;
  }
}

/**
 * Reason why an unconfirmed level counts as refused. Null: a lower limit is allowed, which is not a
 * refusal.
 */
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
  const repeated = seen === undefined || seen === null ? "it repeats no limit" : `it repeats ${seen} A`;
  return `not confirmed within ${confirmedBy.within / 1000} s, ${repeated}`;
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
 * After a broker's return an accepted order counts as published only: the charger may have restarted, too.
 * An order that is only published when a charger becomes ready was lost, and is asked for again.
 */
export type OrderStage = "publishing" | "published" | "acceptedEarly" | "accepted";

export const isPublished = (stage: OrderStage): boolean => stage === "published" || stage === "accepted";

export const isAccepted = (stage: OrderStage): boolean => stage === "acceptedEarly" || stage === "accepted";

/** The broker has every publish of the order. */
export const whenPublished = (stage: OrderStage): OrderStage =>
  isAccepted(stage) ? "accepted" : "published";

/** The broker is connected again. */
export const whenBrokerReturned = (stage: OrderStage): OrderStage =>
  isPublished(stage) ? "published" : "publishing";

/** The charger answered yes, or shows the setpoint. */
export const whenAccepted = (stage: OrderStage): OrderStage =>
  isPublished(stage) ? "accepted" : "acceptedEarly";

/** True: no vehicle was there to show whether the charger ended its pause for this level. */
export const mayLackResume = (order: Order | null, signals: Signals): boolean =>
  order?.stage === "published" && isLevel(order.desired) && keepsPause(order.endsPause, signals);

/** The last command of a charger, and how far it got. */
export interface Order extends LastCommand {
  readonly id: string;
  /** Everything that was published for it, as one text. */
  readonly wire: string;
  stage: OrderStage;
}

/** A command on its way by the messages of a profile. */
export interface Started {
  readonly order: Order;
  /** The charger obeys exactly this already, and each write wears its memory. */
  readonly isNeedless: boolean;
}

/** True: the charger answers each command, and one without an answer counts as refused. */
const isAnswered = ({ confirmedBy, results }: ProfileInstance["profile"]): boolean =>
  confirmedBy === undefined && results.some(({ within }) => within !== undefined);

/**
 * The order of a command: a new one, or `last` again at a refresh. `isOurs`: the charger is under our control, so a
 * repetition need not be published.
 */
export function startOrder(
  last: Order | null,
  command: Command,
  before: Desired | null,
  { publishes, after }: Ordered,
  { profile, isOurs }: Pick<ProfileInstance, "profile"> & { readonly isOurs: boolean },
): Started {
  const id = commandId(command);
  if (last !== null && last.id === id) return { order: last, isNeedless: false };
  const wire = JSON.stringify(publishes);
  const answers = isAnswered(profile);
  // A command whose answer is missing may be lost.
  const isKnown = last !== null && (answers ? last.stage === "accepted" : isPublished(last.stage));
  const isNeedless = isKnown && last.wire === wire && isOurs && profile.rate.wear !== "none";
  const wasToEnd = last !== null && last.endsPause && !isAccepted(last.stage);
  const endsPause = after.pause === "ending" && (before?.kind === "pause" || wasToEnd);
  // A command that is not published has no answer.
  const stage = isNeedless && answers ? "accepted" : "publishing";
  return { order: { id, desired: command.desired, before, endsPause, wire, stage }, isNeedless };
}
