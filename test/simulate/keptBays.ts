import { MINUTE } from "./plan.ts";

/** What one look finds at a charger whose own vehicle another charger may name. */
export interface BayLook {
  /** True time, ms. */
  readonly at: number;
  readonly charger: string;
  /** Another charger names the vehicle of this one, and this one names nobody. */
  readonly isClaimed: boolean;
  /** Its own vehicle would be limited here now. */
  readonly isLimited: boolean;
  readonly isPaused: boolean;
  /** The charger does what its own vehicle would be asked for. */
  readonly obeys: boolean;
  readonly isEmpty: boolean;
  /** It was at some moment since the last look. */
  readonly wasEmpty: boolean;
  readonly isDrawing: boolean;
  /** Its messages reach the gateway. */
  readonly isReachable: boolean;
}

/** Whether the charger must keep the limit of its vehicle, must be free, or may do either. */
export type KeepRule = "keeps" | "either" | "free";

interface Bay {
  /** Since the claim it was limited, and drew current or was paused. */
  readonly keeps: boolean;
  /** It was limited when the claim came. */
  readonly wasLimited: boolean;
  /** Since when it has been empty and reachable without a break; null: it is not. */
  readonly emptySince: number | null;
  readonly isGone: boolean;
}

const UNCLAIMED: Bay = { keeps: false, wasLimited: false, emptySince: null, isGone: false };

/** A make reports every 64 s, and its release may take three refreshes. */
const NOTICED_AFTER = 5 * MINUTE;

/**
 * DESIGN 5.5 for a charger whose vehicle another charger names: it keeps its limit while it draws, and is free once it
 * has said that nobody is plugged in. Between the two both are right: a charger may have drawn nothing for a minute.
 */
export class KeptBays {
  readonly #bays = new Map<string, Bay>();

  ruleFor(look: BayLook): KeepRule {
    const { charger, isClaimed } = look;
    const before = this.#bays.get(charger) ?? UNCLAIMED;
    const now = isClaimed ? claimed(before, look) : unclaimed(look);
    this.#bays.set(charger, now);
    if (!isClaimed) return "either";
    if (now.keeps) return "keeps";
    return now.isGone && now.wasLimited ? "free" : "either";
  }
}

const unclaimed = ({ isLimited, obeys, isEmpty }: BayLook): Bay => ({
  ...UNCLAIMED,
  keeps: isLimited && obeys && !isEmpty,
  wasLimited: isLimited && obeys,
});

function claimed(before: Bay, look: BayLook): Bay {
  const { at, isLimited, isPaused, isEmpty, wasEmpty, isDrawing, isReachable } = look;
  const emptySince = isEmpty && isReachable ? (before.emptySince ?? at) : null;
  return {
    keeps: before.keeps && isLimited && !wasEmpty && (isPaused || isDrawing),
    wasLimited: before.wasLimited,
    emptySince,
    isGone: before.isGone || (emptySince !== null && at > emptySince + NOTICED_AFTER),
  };
}
