import { commandId, type CommandRecord, isLimiting } from "../core/control/command.ts";
import { type Loan, loanOf, takenFor } from "../core/control/loan.ts";
import { type Desired, inWords } from "../core/control/setpoint.ts";
import type { Depot } from "../core/depot.ts";
import type { Change } from "../core/ledger.ts";
import type { Charger } from "../core/site/charger.ts";
import type { ChargerId, Instant } from "../core/units.ts";

/** What commissioning gets with a charger. */
export interface Lent {
  readonly loan: Loan;
  /** The limit of ours that it is under; null: none. */
  readonly standing: Desired | null;
  /** To be stored before anything is said to it. */
  readonly pledge: readonly Change[];
}

/** What was only observed is not said to it again, whatever it stands under. */
const isLimit = (record: CommandRecord): boolean => record.progress !== "observed" && isLimiting(record);

/**
 * Lends a charger to commissioning. One that stands under no limit of ours is remembered as to be released as long as
 * that lasts: after a power cut nobody else would know that it was tried.
 */
export function lend(depot: Depot, charger: Charger, now: Instant): Lent {
  const loan = loanOf(depot.verdictOn(charger, now));
  depot.loans.set(charger.id, loan);
  const last = depot.commands.get(charger.id);
  if (last !== undefined && isLimit(last)) return { loan, standing: last.command.desired, pledge: [] };
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
  };
  return {
    loan,
    standing: null,
    pledge: kept(depot, record, now, `${charger.id} is lent to commissioning: released if that is cut off`),
  };
}

/** Commissioning is over; `isLeft`: the charger was left as it should be, so that no release is owed any more. */
export function returned(depot: Depot, id: ChargerId, isLeft: boolean, now: Instant): readonly Change[] {
  const loan = depot.loans.get(id);
  if (loan !== undefined) loan.isOver = true;
  const last = depot.commands.get(id);
  const isOwed = loan?.takenFor === null && last?.command.desired.kind === "release";
  if (!isOwed || !isLeft) return [];
  const record: CommandRecord = { ...last, progress: "followed", sentAt: now };
  return kept(depot, record, now, `${id} is back from commissioning as it was`);
}

/**
 * Whether a charger is away at commissioning. It comes back when that is over, or when something else is wanted of it;
 * then what holds is said to it anew, with a number above those that it was tried with.
 */
export function lookedFor(
  depot: Depot,
  charger: Charger,
  now: Instant,
): { readonly away: boolean; readonly changes: readonly Change[] } {
  const { id } = charger;
  const loan = depot.loans.get(id);
  if (loan === undefined) return { away: false, changes: [] };
  // Who only observes never takes anything over.
  if (!loan.isOver && depot.settings.mode === "drive")
    loan.takenFor ??= takenFor(loan, depot.verdictOn(charger, now));
  if (loan.isTelling || (!loan.isOver && loan.takenFor === null)) return { away: true, changes: [] };
  depot.loans.delete(id);
  const last = depot.commands.get(id);
  if (last === undefined || !isLimit(last)) return { away: false, changes: [] };
  const command = { ...last.command, ...depot.nextId() };
  const anew: CommandRecord = {
    ...last,
    command,
    progress: "planned",
    sentAt: null,
    sends: 0,
    judgeAt: null,
  };
  depot.undurable.add(id);
  const words = `${id} is back from commissioning: ${inWords(command.desired)} again`;
  return { away: false, changes: kept(depot, anew, now, words) };
}

function kept(depot: Depot, record: CommandRecord, at: Instant, words: string): readonly Change[] {
  const { charger, vehicle, event, ...numbers } = record.command;
  depot.commands.set(charger, record);
  const entry = {
    at,
    kind: "operator",
    charger,
    vehicle,
    event,
    command: commandId(numbers),
    words,
  } as const;
  return [
    { kind: "audit", entry: { ...entry, facts: null } },
    { kind: "command", record },
  ];
}
