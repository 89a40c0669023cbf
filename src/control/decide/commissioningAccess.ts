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
 * A charger without a limit of ours is stored as to be released for that time.
 */
export function acquire(depot: ControlState, charger: Charger, now: Instant): AcquiredCharger {
  const last = depot.commands.get(charger.id);
  const lock = new CommissioningLock(depot.verdictOn(charger, now), last ?? null);
  depot.lock(charger.id, lock);
  if (last !== undefined && isLimit(last)) {
    const { desired } = last.command;
    const message = `${charger.id} is locked for commissioning: ${formatLevel(desired)} again if that is interrupted`;
    return {
      lock,
      limit: desired,
      pendingRelease: storeCommand(depot, lent(last), now, message),
    };
  }
  const release: Command = {
    ...depot.nextId(),
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
      depot,
      releaseWhileLent(release, last),
      now,
      `${charger.id} is locked for commissioning: released if that is interrupted`,
    ),
  };
}

/** Commissioning is over. `isLeft`: the charger has its former setpoint. */
export function endCommissioning(
  depot: ControlState,
  id: ChargerId,
  isLeft: boolean,
  now: Instant,
): readonly Change[] {
  const lock = depot.locks.get(id);
  lock?.end();
  const last = depot.commands.get(id);
  // An operator's release meanwhile is still to be sent.
  const isOurRelease = last?.isLent === true && last.command.desired.kind === "release";
  if (lock?.preemptedBy !== null || !isOurRelease || !isLeft) return [];
  const message = `${id} is back from commissioning as it was`;
  if (last.standing === undefined) return restoreCommand(depot, lock.before, last, now, message);
  // A release was already pending. In observe mode we leave it for the next run in drive mode.
  return depot.barTo("plan", id) !== null ? storeCommand(depot, leftObserved(last), now, message) : [];
}

/**
 * True: commissioning has the charger.
 * The charger returns when commissioning ends, when control needs it, or at the next start.
 * Its command is then sent again with a number above those of the trial.
 */
export function lockStatus(
  depot: ControlState,
  charger: Charger,
  now: Instant,
): { readonly away: boolean; readonly changes: readonly Change[] } {
  const { id } = charger;
  const lock = depot.locks.get(id);
  if (lock !== undefined) {
    // In observe mode control never preempts commissioning.
    if (depot.barTo("plan", id) === null) lock.reconsider(depot.verdictOn(charger, now));
    if (lock.isHeld) return { away: true, changes: [] };
    depot.unlock(id);
  }
  const last = depot.commands.get(id);
  const holds = last !== undefined && (isLimit(last) || last.progress === "planned");
  // In observe mode an interrupted trial is left for the next run in drive mode.
  const wasInterrupted = last?.isLent === true && depot.barTo("plan", id) === null;
  const isBack = wasInterrupted || (lock !== undefined && (holds || last?.isLent === true));
  return { away: false, changes: isBack ? reassertLast(depot, last, now) : [] };
}

function reassertLast(depot: ControlState, last: CommandRecord, now: Instant): readonly Change[] {
  const { charger, desired } = last.command;
  const replaces = desiredAfter(last, depot.sendQueue.isInFlight(charger));
  depot.sendQueue.awaitCommit(charger);
  const what = desired.kind === "release" ? "to be released" : `${formatLevel(desired)} again`;
  const again = decidedAgain(last, depot.nextId(), replaces);
  return storeCommand(depot, again, now, `${charger} is back from commissioning: ${what}`);
}

/**
 * Restores the former command. A trial does not show whether the charger follows it.
 * The number must be above those of the trial.
 */
function restoreCommand(
  depot: ControlState,
  before: CommandRecord | null,
  { command: trial }: CommandRecord,
  now: Instant,
  message: string,
): readonly Change[] {
  if (before !== null) return storeCommand(depot, returned(before, trial), now, message);
  const { charger, vehicle, event } = trial;
  depot.commands.forget(charger);
  depot.feed.announce("charger", charger);
  return [
    auditRow("operator", now, message, { charger, vehicle, event }),
    { kind: "commandForgotten", charger },
  ];
}

function storeCommand(
  depot: ControlState,
  record: CommandRecord,
  at: Instant,
  message: string,
): readonly Change[] {
  const { charger, vehicle, event, ...numbers } = record.command;
  depot.commands.record(record);
  return [
    auditRow("operator", at, message, { charger, vehicle, event, command: commandId(numbers) }),
    { kind: "command", record },
  ];
}
