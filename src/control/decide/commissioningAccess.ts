import { auditRow } from "../../domain/audit.ts";
import {
  commandId,
  type CommandRecord,
  isLimiting,
  isToBeFreed,
  reallySent,
  desiredAfter,
} from "../../domain/command.ts";
import { type CommissioningLock, commissioningLock, preemptedBy } from "./commissioningLock.ts";
import { type Desired, formatLevel } from "../../domain/setpoint.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";

/** What commissioning gets with a charger. */
export interface AcquiredCharger {
  readonly lock: CommissioningLock;
  /** The limit of ours that it is under; null: none. */
  readonly standing: Desired | null;
  /** To be stored before anything is said to it. */
  readonly pendingRelease: readonly Change[];
}

/** What was only observed is not said to it again, whatever it stands under. */
const isLimit = (record: CommandRecord): boolean => record.progress !== "observed" && isLimiting(record);

/**
 * Lends a charger to commissioning, which is stored: after a power cut nobody else would know that it was tried. One
 * that stands under no limit of ours is remembered as to be released as long as that lasts.
 */
export function acquire(depot: ControlState, charger: Charger, now: Instant): AcquiredCharger {
  const last = depot.commands.get(charger.id);
  const loan = commissioningLock(depot.verdictOn(charger, now), last ?? null);
  depot.lock(charger.id, loan);
  if (last !== undefined && isLimit(last)) {
    const { desired } = last.command;
    const words = `${charger.id} is lent to commissioning: ${formatLevel(desired)} again if that is cut off`;
    return {
      lock: loan,
      standing: desired,
      pendingRelease: kept(depot, { ...last, isLent: true }, now, words),
    };
  }
  const told = last === undefined ? null : reallySent(last);
  const command = {
    ...depot.nextId(),
    charger: charger.id,
    desired: { kind: "release" },
    until: null,
    vehicle: last?.command.vehicle ?? null,
    event: last?.command.event ?? null,
    cause: "operator",
    decidedAt: now,
  } as const;
  const record: CommandRecord = {
    command,
    progress: "planned",
    // Nobody here knows what it is being tried with. A release ends any of it, as it would end a pause.
    replaces: { kind: "pause" },
    sentAt: null,
    sends: 0,
    judgeAt: null,
    resends: 0,
    failures: 0,
    isLent: true,
    ...(told !== null && isToBeFreed(told) ? { standing: told } : {}),
  };
  return {
    lock: loan,
    standing: null,
    pendingRelease: kept(
      depot,
      record,
      now,
      `${charger.id} is lent to commissioning: released if that is cut off`,
    ),
  };
}

/** Commissioning is over; `isLeft`: the charger was left as it was. */
export function returned(
  depot: ControlState,
  id: ChargerId,
  isLeft: boolean,
  now: Instant,
): readonly Change[] {
  const loan = depot.locks.get(id);
  if (loan !== undefined) loan.isOver = true;
  const last = depot.commands.get(id);
  // Not one that an operator asked for meanwhile: that is still to be said.
  const isPledged = last?.isLent === true && last.command.desired.kind === "release";
  if (loan?.preemptedBy !== null || !isPledged || !isLeft) return [];
  const words = `${id} is back from commissioning as it was`;
  if (last.standing === undefined) return asBefore(depot, loan.before, last, now, words);
  // It was to be freed before: who only observes leaves that to the one who drives again.
  return depot.barTo("plan", id) !== null
    ? kept(depot, { ...last, progress: "observed", isLent: false }, now, words)
    : [];
}

/**
 * Whether a charger is away at commissioning. It comes back when that is over, or when something else is wanted of it,
 * or with the next start; then what holds is said to it anew, with a number above those that it was tried with.
 */
export function lockStatus(
  depot: ControlState,
  charger: Charger,
  now: Instant,
): { readonly away: boolean; readonly changes: readonly Change[] } {
  const { id } = charger;
  const loan = depot.locks.get(id);
  if (loan !== undefined) {
    // Who only observes never takes anything over.
    if (!loan.isOver && depot.barTo("plan", id) === null)
      loan.preemptedBy ??= preemptedBy(loan, depot.verdictOn(charger, now));
    if (loan.isTelling || (!loan.isOver && loan.preemptedBy === null)) return { away: true, changes: [] };
    depot.unlock(id);
  }
  const last = depot.commands.get(id);
  const holds = last !== undefined && (isLimit(last) || last.progress === "planned");
  // Who only observes leaves what was cut off to the one who drives again.
  const wasCutOff = last?.isLent === true && depot.barTo("plan", id) === null;
  const isBack = wasCutOff || (loan !== undefined && (holds || last?.isLent === true));
  return { away: false, changes: isBack ? reassertLast(depot, last, now) : [] };
}

function reassertLast(depot: ControlState, last: CommandRecord, now: Instant): readonly Change[] {
  const command = { ...last.command, ...depot.nextId() };
  const { charger, desired } = command;
  const { standing: _, outAt: __, ...record } = last;
  const replaces = desiredAfter(last, depot.sendQueue.isInFlight(command.charger));
  depot.sendQueue.awaitCommit(charger);
  const what = desired.kind === "release" ? "to be released" : `${formatLevel(desired)} again`;
  const anew = {
    ...record,
    replaces,
    command,
    progress: "planned",
    sentAt: null,
    sends: 0,
    judgeAt: null,
  } as const;
  return kept(depot, { ...anew, isLent: false }, now, `${charger} is back from commissioning: ${what}`);
}

/** The trial tells nothing of whether the charger follows. Its numbers are above those of the command of before. */
function asBefore(
  depot: ControlState,
  before: CommandRecord | null,
  { command: { charger, epoch, seq, vehicle, event } }: CommandRecord,
  now: Instant,
  words: string,
): readonly Change[] {
  if (before !== null)
    return kept(depot, { ...before, command: { ...before.command, epoch, seq }, isLent: false }, now, words);
  depot.commands.forget(charger);
  depot.feed.chargerChanged(charger);
  return [
    auditRow("operator", now, words, { charger, vehicle, event }),
    { kind: "commandForgotten", charger },
  ];
}

function kept(depot: ControlState, record: CommandRecord, at: Instant, words: string): readonly Change[] {
  const { charger, vehicle, event, ...numbers } = record.command;
  depot.commands.record(record);
  return [
    auditRow("operator", at, words, { charger, vehicle, event, command: commandId(numbers) }),
    { kind: "command", record },
  ];
}
