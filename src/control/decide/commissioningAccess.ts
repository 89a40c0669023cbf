import { auditRow } from "../../domain/audit.ts";
import {
  type Command,
  commandId,
  type CommandRecord,
  isLimiting,
  desiredAfter,
} from "../../domain/command.ts";
import { decidedAgain, leftObserved, lent, releaseWhileLent, returned } from "../send/commands.ts";
import { CommissioningLock } from "./commissioningLock.ts";
import { type Desired, formatLevel } from "../../domain/setpoint.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";

/** Result of locking a charger for commissioning. */
export interface AcquiredCharger {
  readonly lock: CommissioningLock;
  /** Our limit on the charger. Null: none. */
  readonly limit: Desired | null;
  /** Changes to store before commissioning sends anything. */
  readonly pendingRelease: readonly Change[];
}

/** True: a limit that was sent. A command that was only observed is not repeated. */
const isLimit = (record: CommandRecord): boolean => record.progress !== "observed" && isLimiting(record);

/**
 * Locks a charger for commissioning. The lock is stored, so that a power cut does not hide a trial.
 * A charger without a limit of ours is stored as to be released for that time. With a running control, `commissioned` must be
 * called in the same turn: it stores the lock.
 */
export function acquireCharger(state: ControlState, charger: Charger, now: Instant): AcquiredCharger {
  const last = state.commands.get(charger.id);
  const lock = new CommissioningLock(state.verdictOn(charger, now), last ?? null);
  state.lock(charger.id, lock);
  if (last !== undefined && isLimit(last)) {
    const { desired } = last.command;
    const message = `${charger.id} is locked for commissioning: ${formatLevel(desired)} again if that is interrupted`;
    return {
      lock,
      limit: desired,
      pendingRelease: storeCommand(state, lent(last), now, message),
    };
  }
  const release: Command = {
    ...state.nextId(),
    charger: charger.id,
    desired: { kind: "release" },
    until: null,
    vehicle: last?.command.vehicle ?? null,
    event: last?.command.event ?? null,
    cause: "operator",
    decidedAt: now,
  };
  return {
    lock,
    limit: null,
    pendingRelease: storeCommand(
      state,
      releaseWhileLent(release, last),
      now,
      `${charger.id} is locked for commissioning: released if that is interrupted`,
    ),
  };
}

/** Commissioning is over. `isLeft`: the charger has its former setpoint. */
export function endCommissioning(
  state: ControlState,
  id: ChargerId,
  isLeft: boolean,
  now: Instant,
): readonly Change[] {
  const lock = state.locks.get(id);
  lock?.end();
  const last = state.commands.get(id);
  // An operator's release meanwhile is still to be sent.
  const isOurRelease = last?.isLent === true && last.command.desired.kind === "release";
  if (lock?.preemptedBy !== null || !isOurRelease || !isLeft) return [];
  const message = `${id} is back from commissioning as it was`;
  if (last.standing === undefined) return restoreCommand(state, lock.before, last, now, message);
  // A release was already pending. In observe mode we leave it for the next run in drive mode.
  return state.barTo("plan", id) !== null ? storeCommand(state, leftObserved(last), now, message) : [];
}

/**
 * True: commissioning has the charger.
 * The charger returns when commissioning ends, when control needs it, or at the next start.
 * Its command is then sent again with a number above those of the trial.
 */
export function lockStatus(
  state: ControlState,
  charger: Charger,
  now: Instant,
): { readonly away: boolean; readonly changes: readonly Change[] } {
  const { id } = charger;
  const lock = state.locks.get(id);
  if (lock !== undefined) {
    // In observe mode control never preempts commissioning.
    if (state.barTo("plan", id) === null) lock.reconsider(state.verdictOn(charger, now));
    if (lock.isHeld) return { away: true, changes: [] };
    state.unlock(id);
  }
  const last = state.commands.get(id);
  const holds = last !== undefined && (isLimit(last) || last.progress === "planned");
  // In observe mode an interrupted trial is left for the next run in drive mode.
  const wasInterrupted = last?.isLent === true && state.barTo("plan", id) === null;
  const isBack = wasInterrupted || (lock !== undefined && (holds || last?.isLent === true));
  return { away: false, changes: isBack ? reassertLast(state, last, now) : [] };
}

function reassertLast(state: ControlState, last: CommandRecord, now: Instant): readonly Change[] {
  const { charger, desired } = last.command;
  const replaces = desiredAfter(last, state.sendQueue.isInFlight(charger));
  state.sendQueue.awaitCommit(charger);
  const what = desired.kind === "release" ? "to be released" : `${formatLevel(desired)} again`;
  const again = decidedAgain(last, state.nextId(), replaces);
  return storeCommand(state, again, now, `${charger} is back from commissioning: ${what}`);
}

/**
 * Restores the former command. A trial does not show whether the charger follows it.
 * The number must be above those of the trial.
 */
function restoreCommand(
  state: ControlState,
  before: CommandRecord | null,
  { command: trial }: CommandRecord,
  now: Instant,
  message: string,
): readonly Change[] {
  if (before !== null) return storeCommand(state, returned(before, trial), now, message);
  const { charger, vehicle, event } = trial;
  state.commands.forget(charger);
  state.feed.announce("charger", charger);
  return [
    auditRow("operator", now, message, { charger, vehicle, event }),
    { kind: "commandForgotten", charger },
  ];
}

function storeCommand(
  state: ControlState,
  record: CommandRecord,
  at: Instant,
  message: string,
): readonly Change[] {
  const { charger, vehicle, event, ...numbers } = record.command;
  state.commands.record(record);
  return [
    auditRow("operator", at, message, { charger, vehicle, event, command: commandId(numbers) }),
    { kind: "command", record },
  ];
}
