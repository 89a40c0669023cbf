import { type Order, insert, remove } from "../../platform/dueQueue.ts";
import type { ControlSettings } from "../decide/settings.ts";
import type { Dispatch } from "./expand.ts";

/** Dispatches in force for one vehicle. The cost of reading the best few does not grow with the rest. */
export interface Holding {
  readonly count: number;
  /** Best first. */
  readonly ranked: (wattsPerAmpere: number) => Iterable<Dispatch>;
}

/**
 * Dispatches of one vehicle, best first. Current and power have separate lists.
 * Their order depends on the charger and its measurements. The lists are merged only as far as they are read.
 */
export class InForce implements Holding {
  readonly #settings: RankSettings;
  readonly #current: Dispatch[] = [];
  readonly #power: Dispatch[] = [];

  constructor(settings: RankSettings) {
    this.#settings = settings;
  }

  get count(): number {
    return this.#current.length + this.#power.length;
  }

  add(dispatch: Dispatch): void {
    insert(this.#listOf(dispatch), dispatch, orderOf(this.#settings, 1));
  }

  delete(dispatch: Dispatch): boolean {
    return remove(this.#listOf(dispatch), dispatch, orderOf(this.#settings, 1));
  }

  *ranked(wattsPerAmpere: number): Generator<Dispatch> {
    const order = orderOf(this.#settings, wattsPerAmpere);
    let [currents, powers] = [0, 0];
    for (;;) {
      const [current, power] = [this.#current[currents], this.#power[powers]];
      const isCurrent = current !== undefined && (power === undefined || order(current, power) < 0);
      const best = isCurrent ? current : power;
      if (best === undefined) return;
      if (isCurrent) currents += 1;
      else powers += 1;
      yield best;
    }
  }

  #listOf({ setpoint }: Dispatch): Dispatch[] {
    return setpoint.kind === "current" ? this.#current : this.#power;
  }
}

export const NOTHING_IN_FORCE: Holding = { count: 0, ranked: () => [] };

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
