import type { CommandRecord } from "../../domain/command.ts";
import type { Verdict } from "./verdict.ts";

/** A charger that commissioning tries. Control does not command it until a different dispatch wins. */
export interface CommissioningLock {
  /** The command before commissioning. Null: none. */
  readonly before: CommandRecord | null;
  /** The winning dispatch at the begin, serialized. */
  readonly dispatchAtStart: string;
  /** Commissioning must restore the former setpoint and return the charger. */
  cancelRequested: boolean;
  /** Why control needs the charger: nothing more may be sent to it. Null: control does not need it. */
  preemptedBy: string | null;
  /** A publish to the charger is in flight. Control waits for it, so as not to overtake it. */
  isSending: boolean;
  /** Commissioning has ended as it should. */
  isOver: boolean;
}

/** The lock of a charger at the begin of commissioning. */
export const commissioningLock = (verdict: Verdict, before: CommandRecord | null): CommissioningLock => ({
  before,
  dispatchAtStart: dispatchIn(verdict),
  cancelRequested: false,
  preemptedBy: null,
  isSending: false,
  isOver: false,
});

/** Why control needs the charger back. Null: the same dispatch wins as at the begin. */
export function preemptedBy({ dispatchAtStart }: CommissioningLock, verdict: Verdict): string | null {
  if (dispatchIn(verdict) === dispatchAtStart) return null;
  return verdict.winner === null ? "the event on it is over" : `${verdict.winner.event.id} wants it`;
}

/** The asked setpoint, not the limited one: that one changes with the measured voltage. */
const dispatchIn = ({ winner }: Verdict): string =>
  JSON.stringify(winner === null ? null : [winner.event.id, winner.setpoint]);
