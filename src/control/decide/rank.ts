import type { Order } from "../../platform/dueQueue.ts";
import type { Dispatch } from "../schedule/expand.ts";
import type { ControlSettings } from "./settings.ts";

export type RankSettings = Pick<ControlSettings, "priority" | "priorityZero" | "ties">;

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
