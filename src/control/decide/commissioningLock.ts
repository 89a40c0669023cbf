import type { CommandRecord } from "../../domain/command.ts";
import type { Verdict } from "./verdict.ts";

/** A charger that commissioning tries: control leaves it alone until it wants something else of it than when that began. */
export interface CommissioningLock {
  /** The command of before; null: we had told it nothing. */
  readonly before: CommandRecord | null;
  /** What control wanted when it began. */
  readonly wish: string;
  /** It is to be left as it was, and handed back. */
  isRecalled: boolean;
  /** What control wants of it now, in words: nothing more may be said to it. Null: nothing else. */
  preemptedBy: string | null;
  /** Something is on its way to it: control waits for that, or it would be overtaken. */
  isTelling: boolean;
  /** It was left as it should be. */
  isOver: boolean;
}

/** Of a charger as it stands. */
export const commissioningLock = (verdict: Verdict, before: CommandRecord | null): CommissioningLock => ({
  before,
  wish: wishOf(verdict),
  isRecalled: false,
  preemptedBy: null,
  isTelling: false,
  isOver: false,
});

/** Why control wants a charger back; null: all is as it was when the loan began. */
export function preemptedBy({ wish }: CommissioningLock, verdict: Verdict): string | null {
  if (wishOf(verdict) === wish) return null;
  return verdict.winner === null ? "the event on it is over" : `${verdict.winner.event.id} wants it`;
}

/** What is asked, not what comes of it: that follows the measured voltage. */
const wishOf = ({ winner }: Verdict): string =>
  JSON.stringify(winner === null ? null : [winner.event.id, winner.setpoint]);
