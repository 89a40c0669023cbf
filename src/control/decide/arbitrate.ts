import { MOST_OVERRULED } from "../../domain/reason.ts";
import type { EventId } from "../../domain/units.ts";
import type { Dispatch } from "../schedule/expand.ts";
import type { Holding } from "../schedule/inForce.ts";

export interface Ranking {
  readonly winner: Dispatch | null;
  /** The best overruled dispatches in force, best first: at most five. */
  readonly overruled: readonly Dispatch[];
  /** Number of overruled dispatches, unnamed ones included. */
  readonly overruledCount: number;
  /** Some dispatch was set aside by the hold. */
  readonly isHeldBack: boolean;
}

/**
 * Picks the winner among the dispatches in force: by priority, then by the tie rule.
 * Current and power compete. `wattsPerAmpere` converts them where the most restrictive wins.
 * `held`: events that an operator set aside. Null: none, and the cost does not depend on the number
 * overruled.
 */
export function arbitrate(
  holding: Holding,
  held: ReadonlySet<EventId> | null,
  wattsPerAmpere: number,
): Ranking {
  const best: Dispatch[] = [];
  let heldBack = 0;
  for (const dispatch of holding.ranked(wattsPerAmpere)) {
    if (held?.has(dispatch.event.id) === true) heldBack += 1;
    else if (best.length <= MOST_OVERRULED) best.push(dispatch);
    else if (held === null) break;
  }
  const [winner = null, ...overruled] = best;
  const applicable = holding.count - heldBack;
  return {
    winner,
    overruled,
    overruledCount: Math.max(0, applicable - 1),
    isHeldBack: heldBack > 0,
  };
}
