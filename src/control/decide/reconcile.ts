import { type Decision, type CommandRecord, isRetried } from "../../domain/command.ts";
import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import { after, earlier, type Instant } from "../../domain/units.ts";
import { asSwitched, limit, wattsPerAmpere } from "./limits.ts";
import { type Deferral, deferralOf, type Pace } from "./pace.ts";
import type { Verdict } from "./verdict.ts";

export type Step =
  /** `evaluateAt`: the next evaluation of the last command. Null: none. */
  | { readonly kind: "nothing"; readonly evaluateAt: Instant | null }
  /** `deferral`: the last command would end before its successor may be sent, so it is extended. */
  | { readonly kind: "decide"; readonly decision: Decision; readonly deferral: Deferral | null }
  /**
   * The last command is sent again with the same id. That renews the lease and adds no audit row. `evaluateAt`:
   * the earliest time of a newer command that has to wait.
   */
  | { readonly kind: "again"; readonly evaluateAt: Instant | null; readonly deferral: Deferral | null }
  /** An increase that has to wait: for the gate, or for one of the delays. */
  | { readonly kind: "wait"; readonly evaluateAt: Instant | null; readonly deferral: Deferral | null };

/** Facts by which a verdict is compared with the last command. */
export interface Situation extends Pace {
  readonly now: Instant;
  readonly last: CommandRecord | undefined;
  /** The charger or the broker came back: the command is sent, changed or not. */
  readonly reassert: boolean;
  /** The last setpoint was lost with the state: send the current one once, releases included. */
  readonly assertOnce: boolean;
  /** The charger refuses the number of the last command, since it accepted a higher one. */
  readonly isOutnumbered: boolean;
  /**
   * The event of the last command is still in force, though another may win. Used only before starts are
   * allowed.
   */
  readonly isLastInForce: boolean;
  /** False until the first poll of the partner after the start: no new start before that. */
  readonly startsAllowed: boolean;
}

const UNSURE: Decision = {
  desired: { kind: "release" },
  until: null,
  vehicle: null,
  event: null,
  cause: "ended",
};

const AGAIN = { kind: "again", evaluateAt: null, deferral: null } as const;

/** Refreshes of a release that is not measured as followed. */
const RELEASE_REFRESHES = 3;

/**
 * The difference between the verdict and the last command is the next step. Idempotent: a second call gives
 * nothing.
 */
export function reconcile(verdict: Verdict, situation: Situation): Step {
  const { last, now } = situation;
  const isUnsure = last === undefined && situation.assertOnce && situation.startsAllowed;
  const wanted = wantedOf(verdict, last) ?? (isUnsure ? UNSURE : null);
  if (wanted === null)
    return last === undefined ? { kind: "nothing", evaluateAt: null } : confirmed(last, verdict, situation);
  const decision = last === undefined ? wanted : withDeadband(wanted, last, verdict);
  if (last !== undefined && (isSame(decision, last) || isCutShort(verdict, decision, last))) {
    return confirmed(last, verdict, situation);
  }
  if (decision.cause === "event" && !situation.startsAllowed) {
    // The last command may be over after a long downtime. A pause has no end of its own to show that.
    if (isOver(situation.isLastInForce, decision, last))
      return { kind: "wait", evaluateAt: null, deferral: null };
    // The level of our own stop is replaced in a moment. Its lease is kept, but a charger's return does not
    // repeat it.
    const reassert = situation.reassert && last?.command.cause !== "stop";
    return waiting(null, verdict, { ...situation, reassert });
  }
  const deferral = last === undefined ? null : deferralOf(last, decision.desired, verdict, situation, now);
  if (deferral === null || last === undefined) return { kind: "decide", decision, deferral: null };
  const { desired, until, vehicle, event } = last.command;
  if (until === null || until > now) return waiting(deferral, verdict, situation);
  return {
    kind: "decide",
    decision: { desired, until: deferral.until, vehicle, event, cause: "held" },
    deferral,
  };
}

/**
 * The last command is the current one. It continues, or gets a new number where the charger refuses its
 * number.
 */
function confirmed(
  last: CommandRecord,
  verdict: Verdict,
  situation: Situation,
): Step & { kind: "decide" | "again" | "nothing" } {
  const step = resendStep(last, verdict, situation);
  if (step.kind === "nothing" || !situation.isOutnumbered) return step;
  const { desired, until, vehicle, event, cause } = last.command;
  return { kind: "decide", decision: { desired, until, vehicle, event, cause }, deferral: null };
}

/** The last command keeps its lease until a newer one may be sent. It is retried where it did not arrive. */
function waiting(deferral: Deferral | null, verdict: Verdict, situation: Situation): Step {
  const { last } = situation;
  const free = deferral?.until ?? null;
  if (last === undefined) return { kind: "wait", evaluateAt: free, deferral };
  const meanwhile = confirmed(last, verdict, situation);
  if (meanwhile.kind === "decide") return { ...meanwhile, deferral };
  // A command that ends before the next evaluation is evaluated at its end.
  const ends = deferral === null ? null : last.command.until;
  const evaluateAt = sooner(free, sooner(meanwhile.evaluateAt, ends));
  return { kind: meanwhile.kind === "again" ? "again" : "wait", evaluateAt, deferral };
}

/** True: a command of an event or hold that is over, or a release by our own stop. None of them needs a lease. */
function isOver(isLastInForce: boolean, next: Decision, last: CommandRecord | undefined): boolean {
  if (last === undefined) return false;
  const { cause, desired, event: before } = last.command;
  if (cause === "stop") return desired.kind === "release";
  if (cause === "operator") return desired.kind !== "release";
  return cause === "event" && before !== next.event && !isLastInForce;
}

const sooner = (a: Instant | null, b: Instant | null): Instant | null =>
  a === null || b === null ? (a ?? b) : earlier(a, b);

/** Null: the last command may stay. */
function wantedOf(
  { winner, desired, until, vehicle, charger, hold }: Verdict,
  last: CommandRecord | undefined,
): Decision | null {
  const levelUntil = desired.kind === "pause" ? null : until;
  if (winner !== null)
    return { desired, until: levelUntil, vehicle: winner.vehicle, event: winner.event.id, cause: "event" };
  if (hold?.level != null)
    return { desired, until: levelUntil, vehicle: vehicle?.id ?? null, event: null, cause: "operator" };
  // A released charger gets nothing. One that was paused for our own stop is still to be released.
  if (last === undefined || last.command.desired.kind === "release") return null;
  const { vehicle: onIt, event } = last.command;
  const stayed = vehicle !== null && vehicle.id === onIt;
  const ended = { until: null, vehicle: onIt, event };
  const isHeld = last.command.cause === "operator";
  // An exemption frees the charger from any level. The end of a hold's level frees it too.
  if (hold !== null || isHeld) return { ...ended, desired: { kind: "release" }, cause: "operator" };
  if (stayed && last.command.cause === "ended") return null;
  const { atEnd } = charger;
  // The level configured for the end belongs to the event's vehicle. A charger without it is released.
  if (!stayed || atEnd.kind === "release") return { ...ended, desired: { kind: "release" }, cause: "ended" };
  // The phases stay as they are.
  const here = asSwitched(charger, last.command.desired);
  const atRest: Desired = atEnd.kind === "pause" ? atEnd : limit(atEnd, here, vehicle).desired;
  return { ...ended, desired: atRest, cause: "ended" };
}

/** The next step of the last command: sent again if it never arrived, at a return, or to renew its lease. */
function resendStep(
  last: CommandRecord,
  { charger: { refresh, refreshesRelease } }: Verdict,
  { now, reassert }: Situation,
): Step & { kind: "again" | "nothing" } {
  const { command, progress, sentAt, sends, failures, judgeAt } = last;
  if (progress === "observed") return { kind: "nothing", evaluateAt: null };
  const isRelease = command.desired.kind === "release" && !refreshesRelease;
  if (isRelease && progress === "followed") return { kind: "nothing", evaluateAt: null };
  if (command.until !== null && command.until <= now) return { kind: "nothing", evaluateAt: null };
  // No event is in force. A charger that accepted its release needs no repeat at its return.
  const missed = reassert && !(isRelease && progress === "accepted");
  // Sent but still planned: its outcome could not be recorded. That is no reason to repeat it at once.
  if (missed || sentAt === null || failures > 0) return AGAIN;
  if (isRelease && sends > RELEASE_REFRESHES) return { kind: "nothing", evaluateAt: null };
  // A charger with limited writes gets no refresh, unless it did not accept the command.
  const due = refresh === null ? (isRetried(last, refresh) ? judgeAt : null) : after(sentAt, refresh);
  if (due === null) return { kind: "nothing", evaluateAt: null };
  // Sent in the future: the clock was set back. The lease must not wait for it.
  return due <= now || sentAt > now ? AGAIN : { kind: "nothing", evaluateAt: due };
}

const isSame = (decision: Decision, { command }: CommandRecord): boolean =>
  sameLevel(decision.desired, command.desired) &&
  samePhases(decision.desired, command.desired) &&
  decision.until === command.until &&
  decision.vehicle === command.vehicle &&
  decision.event === command.event &&
  (decision.cause === "event") === (command.cause === "event");

/**
 * A withdrawal or edit changes nothing until this vehicle's slot in the release ramp: one message, not two.
 */
const isCutShort = ({ winner }: Verdict, decision: Decision, last: CommandRecord): boolean =>
  winner !== null &&
  winner.cutAt !== null &&
  decision.until !== null &&
  last.command.until !== null &&
  decision.until < last.command.until &&
  isSame({ ...decision, until: last.command.until }, last);

function sameLevel(a: Desired, b: Desired): boolean {
  switch (a.kind) {
    case "current":
      return b.kind === "current" && a.amperes === b.amperes;
    case "power":
      return b.kind === "power" && a.watts === b.watts;
    case "pause":
    case "release":
      return a.kind === b.kind;
  }
}

/** A setpoint without phases leaves them as they are. */
const samePhases = (a: Desired, b: Desired): boolean => {
  const [wanted, stands] = [switchedIn(a)?.count, switchedIn(b)?.count ?? 3];
  return wanted === undefined || wanted === stands;
};

/** An increase smaller than the dead band keeps the level; a reduction always passes. */
function withDeadband(decision: Decision, { command }: CommandRecord, verdict: Verdict): Decision {
  const { deadband } = verdict.charger;
  const [from, to] = [command.desired, decision.desired];
  const ratio = wattsPerAmpere(verdict.charger, verdict.vehicle, null);
  const within =
    (from.kind === "current" && to.kind === "current" && rises(from.amperes, to.amperes, deadband)) ||
    (from.kind === "power" && to.kind === "power" && rises(from.watts, to.watts, deadband * ratio));
  return within ? { ...decision, desired: from } : decision;
}

const rises = (from: number, to: number, lessThan: number): boolean => to > from && to - from < lessThan;
