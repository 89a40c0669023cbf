import type { EventId } from "../units.ts";
import type { Dispatch } from "./expand.ts";
import type { Holding } from "./inForce.ts";
import type { Order } from "./ordered.ts";
import type { ControlSettings } from "./settings.ts";

export interface Ranking {
  readonly winner: Dispatch | null;
  /** The best of the dispatches that hold now but lost, best first: never more than five. */
  readonly overruled: readonly Dispatch[];
  /** How many lost, those that are not named included. */
  readonly overruledCount: number;
  /** Some dispatch was set aside by the hold. */
  readonly isHeldBack: boolean;
}

export type RankSettings = Pick<ControlSettings, "priority" | "priorityZero" | "ties">;

/** A partner that makes a new event for each change leaves hundreds in force: a reason names so many that lost. */
export const MOST_OVERRULED = 5;

/**
 * Which of the dispatches that hold now wins the one actuator: by priority, then by the tie rule (DESIGN 5.4).
 * Current and power compete; `wattsPerAmpere` makes them comparable where the most restrictive wins. `held`: events
 * that an operator set aside; null: none. Without them the cost does not depend on how many lose.
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

/** The better one first. */
export const orderOf =
  (settings: RankSettings, wattsPerAmpere: number): Order<Dispatch> =>
  (a, b) =>
    rank(a, settings) - rank(b, settings) || tie(a, b, settings, wattsPerAmpere);

/** Lower is better; absent loses to any, and 0 either wins over any or counts as absent. */
function rank({ event: { priority } }: Dispatch, { priority: order, priorityZero }: RankSettings): number {
  if (priority === null) return Number.MAX_VALUE;
  if (priority === 0) return priorityZero === "highest" ? -Number.MAX_VALUE : Number.MAX_VALUE;
  return order === "lower" ? priority : -priority;
}

function tie(a: Dispatch, b: Dispatch, { ties }: RankSettings, wattsPerAmpere: number): number {
  const restrictive =
    ties === "mostRestrictive" ? inWatts(a, wattsPerAmpere) - inWatts(b, wattsPerAmpere) : 0;
  return (
    restrictive ||
    b.event.revision - a.event.revision ||
    b.event.created - a.event.created ||
    (a.event.id === b.event.id ? 0 : a.event.id < b.event.id ? 1 : -1)
  );
}

const inWatts = ({ setpoint }: Dispatch, wattsPerAmpere: number): number =>
  setpoint.kind === "power" ? setpoint.watts : setpoint.amperes * wattsPerAmpere;
