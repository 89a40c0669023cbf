import { type Decision, type Command, type CommandRecord, isRetried } from "../../domain/command.ts";
import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import { after, earlier, type Instant } from "../../domain/units.ts";
import { asSwitched, limit, wattsPerAmpere } from "./limits.ts";
import { type Held, heldBy, type Pace } from "./pace.ts";
import type { Verdict } from "./verdict.ts";

export type Step =
  /** `lookAt`: when the standing command wants to be looked at again, if it does. */
  | { readonly kind: "nothing"; readonly lookAt: Instant | null }
  /** `held`: the standing command would end before what is to take its place may go out, so it is made longer. */
  | { readonly kind: "decide"; readonly decision: Decision; readonly held: Held | null }
  /**
   * The standing command goes out once more with the same id: it renews the lease and adds no audit row.
   * `lookAt`: when a newer one, which has to wait, may take its place.
   */
  | { readonly kind: "again"; readonly lookAt: Instant | null; readonly held: Held | null }
  /** An increase that has to wait: for the gate, or for what holds it back. */
  | { readonly kind: "wait"; readonly lookAt: Instant | null; readonly held: Held | null };

export interface Situation extends Pace {
  readonly now: Instant;
  readonly last: CommandRecord | undefined;
  /** The charger or the broker came back: what holds now is sent, changed or not. */
  readonly reassert: boolean;
  /** What it was told before was lost with the state: assert it once, release included (DESIGN 5.7). */
  readonly unsure: boolean;
  /** The charger refuses the number of the last command, since it accepted a higher one. */
  readonly isOutnumbered: boolean;
  /** The event of the last command still holds for the vehicle, though another may win. Asked only before starts are allowed. */
  readonly lastHolds: boolean;
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

const AGAIN = { kind: "again", lookAt: null, held: null } as const;

/** How often a release that is not seen to be followed is sent again before we let it rest. */
const RELEASE_REFRESHES = 3;

/** Desired minus last known is what to do about one charger (DESIGN 5.6). Doing it and asking again gives nothing. */
export function reconcile(verdict: Verdict, situation: Situation): Step {
  const { last, now } = situation;
  const isUnsure = last === undefined && situation.unsure && situation.startsAllowed;
  const wanted = wantedOf(verdict, last) ?? (isUnsure ? UNSURE : null);
  if (wanted === null)
    return last === undefined ? { kind: "nothing", lookAt: null } : confirmed(last, verdict, situation);
  const decision = last === undefined ? wanted : withDeadband(wanted, last, verdict);
  if (last !== undefined && (isSame(decision, last) || isCutShort(verdict, decision, last))) {
    return confirmed(last, verdict, situation);
  }
  if (decision.cause === "event" && !situation.startsAllowed) {
    // Who was away for long may find its last command over, and a pause carries no end of its own that would say so.
    if (isOver(situation.lastHolds, decision, last)) return { kind: "wait", lookAt: null, held: null };
    // What our own stop said is undone in a moment: its lease is kept, but it is not said again because someone came back.
    const reassert = situation.reassert && last?.command.cause !== "stop";
    return waiting(null, verdict, { ...situation, reassert });
  }
  const held = last === undefined ? null : heldBy(last, decision.desired, verdict, situation, now);
  if (held === null || last === undefined) return { kind: "decide", decision, held: null };
  const { desired, until, vehicle, event } = last.command;
  if (until === null || until > now) return waiting(held, verdict, situation);
  return { kind: "decide", decision: { desired, until: held.until, vehicle, event, cause: "held" }, held };
}

/** The last command is what should hold: it stands, or is decided again where its number is refused. */
function confirmed(last: CommandRecord, verdict: Verdict, situation: Situation): Step {
  const step = standing(last, verdict, situation);
  if (step.kind === "nothing" || !situation.isOutnumbered) return step;
  const { desired, until, vehicle, event, cause } = last.command;
  return { kind: "decide", decision: { desired, until, vehicle, event, cause }, held: null };
}

/** Until a newer command may go out, the standing one keeps its lease, and is tried again where it did not arrive. */
function waiting(held: Held | null, verdict: Verdict, situation: Situation): Step {
  const { last } = situation;
  const free = held?.until ?? null;
  if (last === undefined) return { kind: "wait", lookAt: free, held };
  const meanwhile = standing(last, verdict, situation);
  // What would end before it is looked at the next time is looked at when it ends.
  const ends = held === null ? null : last.command.until;
  const lookAt = sooner(free, sooner(meanwhile.lookAt, ends));
  return { kind: meanwhile.kind === "again" ? "again" : "wait", lookAt, held };
}

/** What it was told for an event that does not hold any more, or its release by our own stop, which needs no lease. */
function isOver(holds: boolean, next: Decision, last: CommandRecord | undefined): boolean {
  if (last === undefined) return false;
  const { cause, desired, event: before } = last.command;
  if (cause === "stop") return desired.kind === "release";
  return cause === "event" && before !== next.event && !holds;
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
  // It stays on the phases that it has.
  const here = asSwitched(charger, last.command.desired);
  const atRest: Desired = atEnd.kind === "pause" ? atEnd : limit(atEnd, here, vehicle).desired;
  return { ...ended, desired: atRest, cause: "ended" };
}

const isAtRest = ({ cause }: Command): boolean => cause === "ended" || cause === "operator";

/** The command that stands: sent again when it never arrived, when someone came back, or when its lease wants renewing. */
function standing(
  last: CommandRecord,
  { charger: { refresh, refreshesRelease } }: Verdict,
  { now, reassert }: Situation,
): Step & { kind: "again" | "nothing" } {
  const { command, progress, sentAt, sends, failures, judgeAt } = last;
  if (progress === "observed") return { kind: "nothing", lookAt: null };
  const isRelease = command.desired.kind === "release" && !refreshesRelease;
  if (isRelease && progress === "followed") return { kind: "nothing", lookAt: null };
  if (command.until !== null && command.until <= now) return { kind: "nothing", lookAt: null };
  // Nothing holds any more: who has taken its release need not hear of it at once because someone came back.
  const missed = reassert && !(isRelease && progress === "accepted");
  // Sent but still planned: its outcome could not be recorded, which is no reason to repeat it at once.
  if (missed || sentAt === null || failures > 0) return AGAIN;
  if (isRelease && sends > RELEASE_REFRESHES) return { kind: "nothing", lookAt: null };
  // Where every write wears it, what it was told stands without being repeated, unless it did not take it.
  const due = refresh === null ? (isRetried(last, refresh) ? judgeAt : null) : after(sentAt, refresh);
  if (due === null) return { kind: "nothing", lookAt: null };
  // Sent in the future: the clock was set back, and the lease does not wait for it.
  return due <= now || sentAt > now ? AGAIN : { kind: "nothing", lookAt: due };
}

const isSame = (decision: Decision, { command }: CommandRecord): boolean =>
  sameLevel(decision.desired, command.desired) &&
  samePhases(decision.desired, command.desired) &&
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

/** Who says nothing of phases leaves them as they are. */
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
