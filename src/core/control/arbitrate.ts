import type { Dispatch } from "./expand.ts";
import type { ControlSettings } from "./settings.ts";

export interface Ranking {
  readonly winner: Dispatch | null;
  /** The dispatches that hold now but lost, best first. */
  readonly overruled: readonly Dispatch[];
}

/**
 * Which of the dispatches that hold now wins the one actuator: by priority, then by the tie rule (DESIGN 5.4).
 * Current and power compete; `wattsPerAmpere` makes them comparable where the most restrictive wins.
 */
export function arbitrate(
  holding: readonly Dispatch[],
  settings: Pick<ControlSettings, "priority" | "priorityZero" | "ties">,
  wattsPerAmpere: number,
): Ranking {
  const [winner = null, ...overruled] = holding.toSorted(
    (a, b) => rank(a, settings) - rank(b, settings) || tie(a, b, settings, wattsPerAmpere),
  );
  return { winner, overruled };
}

/** Lower is better; absent loses to any, and 0 either wins over any or counts as absent. */
function rank(
  { event: { priority } }: Dispatch,
  { priority: order, priorityZero }: Pick<ControlSettings, "priority" | "priorityZero">,
): number {
  if (priority === null) return Number.MAX_VALUE;
  if (priority === 0) return priorityZero === "highest" ? -Number.MAX_VALUE : Number.MAX_VALUE;
  return order === "lower" ? priority : -priority;
}

function tie(
  a: Dispatch,
  b: Dispatch,
  { ties }: Pick<ControlSettings, "ties">,
  wattsPerAmpere: number,
): number {
  const restrictive =
    ties === "mostRestrictive" ? inWatts(a, wattsPerAmpere) - inWatts(b, wattsPerAmpere) : 0;
  return (
    restrictive ||
    b.event.revision - a.event.revision ||
    b.event.created - a.event.created ||
    (a.event.id < b.event.id ? 1 : -1)
  );
}

const inWatts = ({ setpoint }: Dispatch, wattsPerAmpere: number): number =>
  setpoint.kind === "power" ? setpoint.watts : setpoint.amperes * wattsPerAmpere;
