import { after, earlier, type EventId, type Instant, type Millis, type VehicleId } from "../units.ts";
import type { Cause, Command, CommandRecord } from "./command.ts";
import { limit, wattsPerAmpere } from "./limits.ts";
import type { Desired } from "./setpoint.ts";
import type { Verdict } from "./verdict.ts";

/** A new command in the making: all but its number. */
export interface Decision {
  readonly desired: Desired;
  readonly until: Instant | null;
  readonly vehicle: VehicleId | null;
  readonly event: EventId | null;
  readonly cause: Cause;
}

export type Step =
  /** `lookAt`: when the standing command wants to be looked at again, if it does. */
  | { readonly kind: "nothing"; readonly lookAt: Instant | null }
  | { readonly kind: "decide"; readonly decision: Decision }
  /**
   * The standing command goes out once more with the same id: it renews the lease and adds no audit row.
   * `lookAt`: when a newer one, which has to wait, may take its place.
   */
  | { readonly kind: "again"; readonly lookAt: Instant | null }
  /** An increase that has to wait for the charger's minimum interval, or for the gate. */
  | { readonly kind: "wait"; readonly lookAt: Instant | null };

export interface Situation {
  readonly now: Instant;
  readonly last: CommandRecord | undefined;
  readonly refresh: Millis;
  /** The charger or the broker came back: what holds now is sent, changed or not. */
  readonly reassert: boolean;
  /** What it was told before was lost with the state: assert it once, release included (DESIGN 5.7). */
  readonly unsure: boolean;
  /** False until the partner was asked once after the start: no new start before that (DESIGN 5.7). */
  readonly startsAllowed: boolean;
}

const UNSURE: Decision = {
  desired: { kind: "release" },
  until: null,
  vehicle: null,
  event: null,
  cause: "ended",
};

const AGAIN = { kind: "again", lookAt: null } as const;

/** How often a release that is not seen to be followed is sent again before we let it rest. */
const RELEASE_REFRESHES = 3;

/** Desired minus last known is what to do about one charger (DESIGN 5.6). Doing it and asking again gives nothing. */
export function reconcile(verdict: Verdict, situation: Situation): Step {
  const { last, now } = situation;
  const isUnsure = last === undefined && situation.unsure && situation.startsAllowed;
  const wanted = wantedOf(verdict, last) ?? (isUnsure ? UNSURE : null);
  if (wanted === null)
    return last === undefined ? { kind: "nothing", lookAt: null } : standing(last, situation);
  const decision = last === undefined ? wanted : withDeadband(wanted, last, verdict);
  if (last !== undefined && (isSame(decision, last) || isCutShort(verdict, decision, last))) {
    return standing(last, situation);
  }
  if (decision.cause === "event" && !situation.startsAllowed) return waiting(null, situation);
  const free = last === undefined ? now : freeAt(last, decision, verdict, now);
  return free > now ? waiting(free, situation) : { kind: "decide", decision };
}

/** Until a newer command may go out, the standing one keeps its lease, and is tried again where it did not arrive. */
function waiting(free: Instant | null, situation: Situation): Step {
  const { last } = situation;
  if (last === undefined) return { kind: "wait", lookAt: free };
  const meanwhile = standing(last, situation);
  if (meanwhile.kind === "again") return { kind: "again", lookAt: free };
  return { kind: "wait", lookAt: sooner(free, meanwhile.lookAt) };
}

const sooner = (a: Instant | null, b: Instant | null): Instant | null =>
  a === null || b === null ? (a ?? b) : earlier(a, b);

/** Null: whatever the charger was told last may stand. */
function wantedOf(
  { winner, desired, until, vehicle, charger, hold }: Verdict,
  last: CommandRecord | undefined,
): Decision | null {
  if (winner !== null) {
    const levelUntil = desired.kind === "pause" ? null : until;
    return { desired, until: levelUntil, vehicle: winner.vehicle, event: winner.event.id, cause: "event" };
  }
  // A charger that was let go already gets nothing; one that was only paused for our own stop is still to be let go.
  if (last === undefined || last.command.desired.kind === "release") return null;
  const { vehicle: onIt, event } = last.command;
  const stayed = vehicle !== null && vehicle.id === onIt;
  if (stayed && isAtRest(last.command)) return null;
  const ended = { until: null, vehicle: onIt, event };
  if (hold !== null) return { ...ended, desired: { kind: "release" }, cause: "operator" };
  const { atEnd } = charger;
  // What was configured for the end is for the vehicle that the event was for; a charger it has left is released.
  if (!stayed || atEnd.kind === "release") return { ...ended, desired: { kind: "release" }, cause: "ended" };
  const atRest: Desired = atEnd.kind === "pause" ? atEnd : limit(atEnd, charger, vehicle).desired;
  return { ...ended, desired: atRest, cause: "ended" };
}

const isAtRest = ({ cause }: Command): boolean => cause === "ended" || cause === "operator";

/** The command that stands: sent again when it never arrived, when someone came back, or when its lease wants renewing. */
function standing(
  last: CommandRecord,
  { now, refresh, reassert }: Situation,
): Step & { kind: "again" | "nothing" } {
  const { command, progress, sentAt, sends } = last;
  if (progress === "observed") return { kind: "nothing", lookAt: null };
  const isRelease = command.desired.kind === "release";
  if (isRelease && progress === "followed") return { kind: "nothing", lookAt: null };
  if (command.until !== null && command.until <= now) return { kind: "nothing", lookAt: null };
  // Nothing holds any more: who has taken its release need not hear of it at once because someone came back.
  const missed = reassert && !(isRelease && progress === "accepted");
  if (missed || progress === "planned" || sentAt === null) return AGAIN;
  if (isRelease && sends > RELEASE_REFRESHES) return { kind: "nothing", lookAt: null };
  const due = after(sentAt, refresh);
  // Sent in the future: the clock was set back, and the lease does not wait for it.
  return due <= now || sentAt > now ? AGAIN : { kind: "nothing", lookAt: due };
}

const isSame = (decision: Decision, { command }: CommandRecord): boolean =>
  sameLevel(decision.desired, command.desired) &&
  decision.until === command.until &&
  decision.vehicle === command.vehicle &&
  decision.event === command.event &&
  (decision.cause === "event") === (command.cause === "event");

/** An unplanned end changes nothing until this vehicle's turn to be released comes: one message, not two. */
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

/** When the hardware may be written to again; a reduction need not wait, and no command waits past its own end. */
function freeAt({ command }: CommandRecord, decision: Decision, { charger }: Verdict, now: Instant): Instant {
  const wasSetBack = now < command.decidedAt;
  if (wasSetBack || isReduction(command.desired, decision.desired)) return now;
  const rested = after(command.decidedAt, charger.minInterval);
  return command.until === null ? rested : earlier(rested, command.until);
}

/** Unless both can be compared and the level rises, it counts as a reduction: protection of hardware never delays one. */
function isReduction(from: Desired, to: Desired): boolean {
  if (to.kind === "release") return false;
  if (from.kind === "pause") return to.kind === "pause";
  if (from.kind === "current" && to.kind === "current") return to.amperes < from.amperes;
  if (from.kind === "power" && to.kind === "power") return to.watts < from.watts;
  return true;
}
