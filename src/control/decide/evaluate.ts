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
import { endOf, type Hold, releaseHold, setAsideBy } from "../../domain/hold.ts";
import { type Desired, formatLevel, onSamePhases, switchedIn, valueOf } from "../../domain/setpoint.ts";
import { type ChargerId, type Instant, later } from "../../domain/units.ts";
import { closeHold, endReachedHolds, openHold } from "../holds/lifecycle.ts";
import { effectOf } from "../holds/untilEvents.ts";
import { endKeptLimit, limitedBefore } from "../observe/keepLimits.ts";
import { markEvaluated } from "../schedule/advance.ts";
import { newCommand, observedOnly } from "../send/commands.ts";
import { strandedRelease } from "../send/release.ts";
import type { Reevaluation } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { lockStatus } from "./commissioningAccess.ts";
import { paceOf } from "./pace.ts";
import { type Ended, howEnded, reasonOf } from "./reason.ts";
import { recordDeferral, endDeferral } from "./deferrals.ts";
import { phased } from "./phases.ts";
import { reconcile, type Step } from "./reconcile.ts";
import { unclaimed, type Verdict } from "./verdict.ts";

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
  const command: Command = { ...decision, desired, ...number, charger: id, decidedAt: now };
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

/** An operator's release: from the events in force, until those end. Later events still apply. */
export function free(
  state: ControlState,
  chargers: Iterable<ChargerId>,
  by: string,
  now: Instant,
): readonly Change[] {
  const changes: Change[] = [];
  for (const id of chargers) {
    const charger = state.chargers.get(id);
    if (charger === undefined) continue;
    state.locks.get(id)?.cancel();
    changes.push(...freeFromLevels(state, id, by, now));
    const verdict = state.verdictOn(charger, now);
    const before = state.holds.releaseOf(id);
    const set = setAsideBy(before);
    const claims =
      verdict.vehicle === null
        ? []
        : state.agenda.allInForce(verdict.vehicle.id, now).filter(({ event }) => !set.has(event.id));
    const last = state.commands.get(id);
    if (claims.length > 0) {
      // A second release includes the events of the first.
      const events = [...new Set([...set, ...claims.map(({ event }) => event.id)])];
      const latest = claims.map(({ until }) => until).reduce(later, latestOf(before) ?? now);
      const hold = releaseHold({ id: state.nextHoldId(), charger: id, events, since: now, latest, by });
      if (before !== null)
        changes.push(...closeHold(state, before, by, `replaced by ${hold.id}`, now).changes);
      state.holds.put(hold);
      changes.push(
        { kind: "hold", hold },
        operatorRow(id, now, `${id} freed by an operator until ${state.wallClock(latest)}`),
      );
    } else if (last !== undefined && last.command.desired.kind !== "release") {
      const { vehicle, event, desired } = last.command;
      const decision = {
        desired: { kind: "release" },
        until: null,
        vehicle,
        event,
        cause: "operator",
      } as const;
      changes.push(operatorRow(id, now, `${id} freed by an operator from ${formatLevel(desired)}`));
      changes.push(...decide(state, verdict, decision, now));
    }
  }
  return changes;
}

/** A release ends the levels of narrower holds, and exempts the charger from that of the site's hold. */
function freeFromLevels(state: ControlState, id: ChargerId, by: string, now: Instant): readonly Change[] {
  const occupant = state.occupancy.at(id);
  const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
  return state.holds.over(id, vehicle, now).flatMap((hold): readonly Change[] => {
    if (hold.level === null) return [];
    if (hold.scope.kind !== "site") return closeHold(state, hold, by, "released", now).changes;
    const exempt: Hold = {
      ...hold,
      id: state.nextHoldId(),
      scope: { kind: "charger", charger: id },
      level: null,
      end: { kind: "at", at: endOf(hold) },
      since: now,
      by,
      reason: "release",
      key: null,
    };
    return openHold(state, exempt, now).changes;
  });
}

const latestOf = (hold: Hold | null): Instant | null =>
  hold?.end.kind === "events" ? hold.end.latest : null;

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

const operatorRow = (charger: ChargerId, at: Instant, words: string): Change =>
  auditRow("operator", at, words, { charger });
