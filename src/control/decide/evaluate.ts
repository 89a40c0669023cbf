import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import {
  type Command,
  commandId,
  type CommandRecord,
  desiredAfter,
  type Decision,
} from "../../domain/command.ts";
import { setAsideBy } from "../../domain/hold.ts";
import { type Desired, onSamePhases, switchedIn, valueOf } from "../../domain/setpoint.ts";
import { type ChargerId, type Instant, later } from "../../domain/units.ts";
import { endReachedHolds } from "../holds/lifecycle.ts";
import { effectOf } from "../holds/untilEvents.ts";
import { endKeptLimit, limitedBefore } from "../observe/keepLimits.ts";
import { markEvaluated } from "../schedule/advance.ts";
import { newCommand, observedOnly } from "../send/commands.ts";
import { strandedRelease } from "../send/release.ts";
import type { Reevaluation } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { lockStatus } from "./commissioningAccess.ts";
import { paceOf, siteRise } from "./pace.ts";
import { type Ended, howEnded, reasonOf } from "./reason.ts";
import { phased } from "./phases.ts";
import { reconcile, type Step } from "./reconcile.ts";
import { unclaimed, type Verdict } from "./verdict.ts";

/** Decisions on some chargers, not committed yet. */
export interface Evaluation {
  readonly changes: readonly Change[];
  /** Chargers that have something to be sent, once the changes are committed. */
  readonly send: readonly ChargerId[];
}

/**
 * Arbitration and reconciliation of these chargers: the difference between the verdict and the last command.
 */
export function evaluate(
  state: ControlState,
  reevaluations: Iterable<Reevaluation>,
  now: Instant,
): Evaluation {
  const changes: Change[] = [];
  const send: ChargerId[] = [];
  for (const { charger: id, reassert } of reevaluations) {
    const charger = state.chargers.get(id);
    if (charger === undefined) continue;
    state.feed.announce("charger", id);
    changes.push(...endKeptLimit(state, id, now));
    changes.push(...endReachedHolds(state, id, now));
    markEvaluated(state, id, now);
    const evaluated = evaluateCharger(state, charger, reassert, now);
    changes.push(...evaluated.changes);
    if (evaluated.isToSend) send.push(id);
  }
  return { changes, send };
}

/** Commissioning may have the charger, or observe mode may have left it limited. Otherwise its verdict counts. */
function evaluateCharger(
  state: ControlState,
  charger: Charger,
  reassert: boolean,
  now: Instant,
): { readonly changes: readonly Change[]; readonly isToSend: boolean } {
  const { id } = charger;
  const { away, changes: returned } = lockStatus(state, charger, now);
  if (away) {
    endDeferral(state, id, now);
    return { changes: returned, isToSend: false };
  }
  const stranded = releaseStranded(state, charger, now);
  if (stranded !== null) {
    endDeferral(state, id, now);
    const isDue = stranded.changes.length > 0 || !state.sendQueue.isInFlight(id);
    return {
      changes: [...returned, ...stranded.changes],
      isToSend: isDue && state.barTo("queueRelease", id) === null,
    };
  }
  const { verdict, step } = stepOf(state, charger, reassert, now);
  const changes = [
    ...returned,
    ...effectOf(state, verdict, now),
    ...recordDeferral(state, verdict, step, now),
  ];
  if (step.kind === "decide") {
    changes.push(...decide(state, verdict, step.decision, now));
    return { changes, isToSend: state.barTo("queue", id) === null };
  }
  if (step.evaluateAt !== null) state.wake(id, step.evaluateAt);
  // A command in flight is the current one. On a return it may have been published too early.
  const isDue = step.kind === "again" && (reassert || !state.sendQueue.isInFlight(id));
  return { changes, isToSend: isDue && state.barTo("queue", id) === null };
}

/**
 * In observe mode: the release of a charger that an earlier command left limited, with its rows. No rows: it is decided
 * already and still to be sent. Null: the charger is not stranded.
 */
export function releaseStranded(
  state: ControlState,
  charger: Charger,
  now: Instant,
): { readonly changes: readonly Change[] } | null {
  const stranded = state.barTo("plan", charger.id) === null ? null : strandedRelease(state, charger.id);
  if (stranded === null) return null;
  const { standing, release } = stranded;
  if (release === null) return { changes: [] };
  state.commands.record(standing);
  return { changes: decide(state, unclaimed(state.verdictOn(charger, now)), release, now) };
}

/** The next step for one charger. Schedules an evaluation for the time at which it may change. */
export function stepOf(
  state: ControlState,
  charger: Charger,
  reassert: boolean,
  now: Instant,
): { readonly verdict: Verdict; readonly step: Step } {
  const { id } = charger;
  const last = state.commands.get(id);
  const allowed = state.verdictOn(charger, now);
  const { verdict, evaluateAt } =
    allowed.phases === null ? { verdict: allowed, evaluateAt: null } : phased(allowed, last, now);
  if (evaluateAt !== null) state.wake(id, evaluateAt);
  const startsAllowed = state.barTo("start", id) === null;
  const step = reconcile(verdict, {
    now,
    last,
    reassert,
    assertOnce: state.unasserted.has(id),
    isOutnumbered: last !== undefined && state.commands.isNumberRefused(last.command),
    isLastInForce: !startsAllowed && isLastInForce(state, verdict, last, now),
    startsAllowed,
    ...paceOf(state, charger, now),
  });
  return { verdict, step };
}

/** A new, numbered command. Its row is committed before it is published. */
export function decide(
  state: ControlState,
  verdict: Verdict,
  decision: Decision,
  now: Instant,
): readonly Change[] {
  const { id } = verdict.charger;
  const last = state.commands.get(id);
  const number = state.nextId();
  // A command of an earlier run may have arrived without an acknowledgement.
  const mayHaveLeft = state.sendQueue.isInFlight(id) || last?.command.epoch !== number.epoch;
  const isRenumbered =
    last !== undefined &&
    state.commands.isNumberRefused(last.command) &&
    decision.desired === last.command.desired &&
    decision.cause === last.command.cause;
  // A new number changes nothing for the charger: it still replaces what the refused one replaced.
  const replaces = isRenumbered ? last.replaces : last === undefined ? null : desiredAfter(last, mayHaveLeft);
  const desired = onSamePhases(decision.desired, replaces);
  const own = last?.command.own === undefined ? {} : { own: last.command.own };
  const command: Command = { ...decision, desired, ...number, charger: id, decidedAt: now, ...own };
  const observing = decision.cause !== "observe" && state.barTo("plan", id) !== null;
  const planned = {
    ...newCommand(command, replaces),
    resends: isRenumbered ? last.resends : 0,
    ...limitedBefore(state, command),
  };
  const record = observing ? observedOnly(planned, last) : planned;
  // The verdict may be about another vehicle, which has to wait.
  const reason =
    (isRenumbered ? state.commands.reasonOf(id) : null) ??
    reasonOf(verdict, decision, state.wallClock, endedOf(state, decision, now));
  state.recordDecision(record, reason);
  const message = observing ? `observing, not sent: ${reason.words}` : reason.words;
  return [
    auditRow("decision", now, message, {
      charger: id,
      vehicle: command.vehicle,
      event: command.event,
      command: commandId(command),
      facts: { ...reason, told: desiredAsJson(desired), ...(observing ? { observed: true } : {}) },
    }),
    { kind: "command", record },
  ];
}

function endedOf(state: ControlState, { event, vehicle, cause }: Decision, now: Instant): Ended {
  if (cause !== "ended" || event === null || vehicle === null) return "in its time";
  return howEnded(state.known.get(event), vehicle, state.expansion, now);
}

/** The setpoint as in the record. `phases` only where they were switched. */
function desiredAsJson(desired: Desired): Json {
  const phases = switchedIn(desired)?.count;
  return { kind: desired.kind, ...valueOf(desired), ...(phases === undefined ? {} : { phases }) };
}

/** True: the event of the last command is in force for the vehicle, and not set aside by an operator. */
const isLastInForce = (
  state: ControlState,
  { vehicle, hold }: Verdict,
  last: CommandRecord | undefined,
  now: Instant,
): boolean =>
  vehicle !== null &&
  state.agenda
    .allInForce(vehicle.id, now)
    .some(({ event }) => event.id === last?.command.event && !setAsideBy(hold).has(event.id));

const NO_ROWS: readonly Change[] = [];

/**
 * Records a deferral of the charger and its place in the ramp. Call it before the decision replaces the last
 * command. Returns the rows to store.
 */
export function recordDeferral(
  state: ControlState,
  verdict: Verdict,
  step: Step,
  now: Instant,
): readonly Change[] {
  const { id } = verdict.charger;
  const deferral = step.kind === "nothing" ? null : step.deferral;
  if (deferral === null) state.endDeferral(id);
  else state.defer(id, deferral);
  const { ramp } = state;
  if (ramp === null) return NO_ROWS;
  const before = state.commands.get(id)?.command.desired;
  const rise = before === undefined ? 0 : siteRise(before, verdict.desired, verdict, ramp.unit);
  if (deferral?.by === "release ramp") {
    ramp.wait(id, rise);
    return noteWait(state, id, now);
  }
  if (step.kind === "decide" && before !== undefined)
    ramp.passed(siteRise(before, step.decision.desired, verdict, ramp.unit), now);
  leaveRampOrder(state, id, now);
  return step.kind === "decide" ? NO_ROWS : noteWait(state, id, null);
}

/**
 * A level that waits is decided anew, as its window ends. A pause is not: its wait is stored. `since` null: it does not
 * wait.
 */
function noteWait({ commands }: ControlState, id: ChargerId, since: Instant | null): readonly Change[] {
  const record = commands.get(id);
  if (record?.command.desired.kind !== "pause") return NO_ROWS;
  const { waitsSince, ...rest } = record;
  if ((waitsSince === undefined) === (since === null)) return NO_ROWS;
  const noted = since === null ? rest : { ...rest, waitsSince: since };
  commands.record(noted);
  return [{ kind: "command", record: noted }];
}

/** This charger has nothing to wait for: the next one in the ramp may go on. */
function endDeferral(state: ControlState, id: ChargerId, now: Instant): void {
  state.endDeferral(id);
  leaveRampOrder(state, id, now);
}

function leaveRampOrder(state: ControlState, id: ChargerId, now: Instant): void {
  const { ramp } = state;
  const next = ramp?.leave(id) ?? null;
  if (ramp !== null && next !== null) state.wake(next, later(ramp.nextSlot(next, now), now));
}
