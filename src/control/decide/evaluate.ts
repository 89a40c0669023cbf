import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import {
  type Command,
  commandId,
  type CommandRecord,
  desiredAfter,
  type Hold,
  type Decision,
} from "../../domain/command.ts";
import { openUntil } from "../../domain/event.ts";
import { type Desired, formatLevel, onSamePhases, switchedIn, valueOf } from "../../domain/setpoint.ts";
import { type ChargerId, type Instant, instant, later } from "../../domain/units.ts";
import { dropKeptLimit } from "../observe/keepLimits.ts";
import type { Reevaluation } from "../ports.ts";
import { markEvaluated } from "../schedule/advance.ts";
import type { Dispatch } from "../schedule/expand.ts";
import { newCommand, observedOnly } from "../send/commands.ts";
import { strandedRelease } from "../send/release.ts";
import type { ControlState } from "../state.ts";
import { lockStatus } from "./commissioningAccess.ts";
import { type Ended, howEnded, reasonOf } from "./explain.ts";
import { recordDeferral, paceOf, endDeferral } from "./deferral.ts";
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
  depot: ControlState,
  reevaluations: Iterable<Reevaluation>,
  now: Instant,
): Evaluation {
  const changes: Change[] = [];
  const send: ChargerId[] = [];
  for (const { charger: id, reassert } of reevaluations) {
    const charger = depot.chargers.get(id);
    if (charger === undefined) continue;
    depot.feed.announce("charger", id);
    if (depot.occupancy.kept.of(id) !== null) dropKeptLimit(depot, id, now);
    changes.push(...expireHold(depot, id, now));
    markEvaluated(depot, id, now);
    if (depot.locks.has(id) || depot.commands.get(id)?.isLent === true) {
      const lockState = lockStatus(depot, charger, now);
      changes.push(...lockState.changes);
      if (lockState.away) {
        endDeferral(depot, id, now);
        continue;
      }
    }
    const stranded = depot.barTo("plan", id) === null ? null : strandedRelease(depot, id);
    if (stranded !== null) {
      const { standing, release } = stranded;
      if (release !== null) {
        depot.commands.record(standing);
        changes.push(...decide(depot, unclaimed(depot.verdictOn(charger, now)), release, now));
      }
      if (depot.barTo("queueRelease", id) === null && !depot.sendQueue.isInFlight(id)) send.push(id);
      continue;
    }
    const { verdict, step } = stepOf(depot, charger, reassert, now);
    recordDeferral(depot, verdict, step, now);
    switch (step.kind) {
      case "decide":
        changes.push(...decide(depot, verdict, step.decision, now));
        if (depot.barTo("queue", id) === null) send.push(id);
        break;
      case "again":
        if (step.lookAt !== null) depot.wake(id, step.lookAt);
        // A command in flight is the current one. On a return it may have been published too early.
        if (depot.barTo("queue", id) === null && (reassert || !depot.sendQueue.isInFlight(id))) send.push(id);
        break;
      case "wait":
      case "nothing":
        if (step.lookAt !== null) depot.wake(id, step.lookAt);
        break;
    }
  }
  return { changes, send };
}

/** The next step for one charger. Schedules an evaluation for the time at which it may change. */
export function stepOf(
  depot: ControlState,
  charger: Charger,
  reassert: boolean,
  now: Instant,
): { readonly verdict: Verdict; readonly step: Step } {
  const { id } = charger;
  const last = depot.commands.get(id);
  const allowed = depot.verdictOn(charger, now);
  const { verdict, evaluateAt: lookAt } =
    allowed.phases === null ? { verdict: allowed, evaluateAt: null } : phased(allowed, last, now);
  if (lookAt !== null) depot.wake(id, lookAt);
  const startsAllowed = depot.barTo("start", id) === null;
  const step = reconcile(verdict, {
    now,
    last,
    reassert,
    assertOnce: depot.unasserted.has(id),
    isOutnumbered: last !== undefined && depot.commands.isNumberRefused(last.command),
    isLastInForce: !startsAllowed && isLastInForce(depot, verdict, last, now),
    startsAllowed,
    ...paceOf(depot, charger, now),
  });
  return { verdict, step };
}

/** A new, numbered command. Its row is committed before it is published. */
export function decide(
  depot: ControlState,
  verdict: Verdict,
  decision: Decision,
  now: Instant,
): readonly Change[] {
  const { id } = verdict.charger;
  const last = depot.commands.get(id);
  const number = depot.nextId();
  // A command of an earlier run may have arrived without an acknowledgement.
  const mayHaveLeft = depot.sendQueue.isInFlight(id) || last?.command.epoch !== number.epoch;
  const isRenumbered =
    last !== undefined &&
    depot.commands.isNumberRefused(last.command) &&
    decision.desired === last.command.desired &&
    decision.cause === last.command.cause;
  // A new number changes nothing for the charger: it still replaces what the refused one replaced.
  const replaces = isRenumbered ? last.replaces : last === undefined ? null : desiredAfter(last, mayHaveLeft);
  const desired = onSamePhases(decision.desired, replaces);
  const command: Command = { ...decision, desired, ...number, charger: id, decidedAt: now };
  const observing = decision.cause !== "observe" && depot.barTo("plan", id) !== null;
  const planned = { ...newCommand(command, replaces), resends: isRenumbered ? last.resends : 0 };
  const record = observing ? observedOnly(planned, last) : planned;
  const reason = reasonOf(verdict, decision, depot.wallClock, endedOf(depot, decision, now));
  depot.recordDecision(record, reason);
  const message = observing ? `observing, not sent: ${reason.words}` : reason.words;
  return [
    auditRow("decision", now, message, {
      charger: id,
      vehicle: command.vehicle,
      event: command.event,
      command: commandId(command),
      facts: { ...reason, told: desiredAsJson(desired) },
    }),
    { kind: "command", record },
  ];
}

function endedOf(depot: ControlState, { event, vehicle, cause }: Decision, now: Instant): Ended {
  if (cause !== "ended" || event === null || vehicle === null) return "in its time";
  return howEnded(depot.known.get(event), vehicle, depot.expansion, now);
}

/** The setpoint as in the record. `phases` only where they were switched. */
function desiredAsJson(desired: Desired): Json {
  const phases = switchedIn(desired)?.count;
  return { kind: desired.kind, ...valueOf(desired), ...(phases === undefined ? {} : { phases }) };
}

/** An operator's release: from the events in force, until those end. Later events still apply. */
export function free(depot: ControlState, chargers: Iterable<ChargerId>, now: Instant): readonly Change[] {
  const changes: Change[] = [];
  for (const id of chargers) {
    const charger = depot.chargers.get(id);
    if (charger === undefined) continue;
    const lock = depot.locks.get(id);
    if (lock !== undefined) lock.cancelRequested = true;
    const verdict = depot.verdictOn(charger, now);
    const before = depot.holds.get(id);
    const claims =
      verdict.vehicle === null ? [] : notSetAside(depot.agenda.allInForce(verdict.vehicle.id, now), before);
    const last = depot.commands.get(id);
    if (claims.length > 0) {
      // A second release includes the events of the first.
      const until = claims.reduce((latest, { until }) => later(latest, until), before?.until ?? now);
      const events = [...new Set([...(before?.events ?? []), ...claims.map(({ event }) => event.id)])];
      const hold = { charger: id, events, since: now, until };
      depot.hold(hold);
      depot.wake(id, until);
      changes.push(
        { kind: "hold", hold },
        operatorRow(id, now, `${id} freed by an operator until ${depot.wallClock(until)}`),
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
      changes.push(...decide(depot, verdict, decision, now));
    }
  }
  return changes;
}

function notSetAside(dispatches: readonly Dispatch[], hold: Hold | undefined): readonly Dispatch[] {
  const setAside = new Set(hold?.events);
  return dispatches.filter(({ event }) => !setAside.has(event.id));
}

/** True: the event of the last command is in force for the vehicle, and not set aside by an operator. */
const isLastInForce = (
  depot: ControlState,
  { vehicle, hold }: Verdict,
  last: CommandRecord | undefined,
  now: Instant,
): boolean =>
  vehicle !== null &&
  notSetAside(depot.agenda.allInForce(vehicle.id, now), hold ?? undefined).some(
    ({ event }) => event.id === last?.command.event,
  );

const operatorRow = (charger: ChargerId, at: Instant, words: string): Change =>
  auditRow("operator", at, words, { charger });

/** A hold lasts as long as its events. An event that is extended extends the hold. */
function expireHold(depot: ControlState, charger: ChargerId, now: Instant): readonly Change[] {
  const hold = depot.holds.get(charger);
  if (hold === undefined) return [];
  const open = hold.events
    .map((event) => openUntil(depot.known.get(event), now, hold.since))
    .filter((at) => at !== null);
  if (open.length === 0) {
    depot.endHold(charger);
    return [{ kind: "holdEnded", charger }];
  }
  depot.wake(charger, open.reduce(later));
  if (now < hold.until) return [];
  const occupant = depot.occupancy.at(charger);
  const inForce = occupant.kind === "vehicle" ? depot.agenda.allInForce(occupant.vehicle, now) : [];
  const setAside = new Set(hold.events);
  const until = Math.max(
    ...inForce.filter(({ event }) => setAside.has(event.id)).map((dispatch) => dispatch.until),
  );
  if (until > now) {
    const longer = { ...hold, until: instant(until) };
    depot.hold(longer);
    depot.wake(charger, longer.until);
    return [{ kind: "hold", hold: longer }];
  }
  depot.endHold(charger);
  return [{ kind: "holdEnded", charger }];
}
