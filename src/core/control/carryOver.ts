import type { Instant, VehicleId } from "../units.ts";
import type { Agenda } from "./agenda.ts";
import type { Dispatch } from "./expand.ts";

/** What the record has a word on already, so that it does not say it again. */
interface Marks {
  readonly seen: WeakSet<Dispatch>;
  readonly nowhere: WeakSet<Dispatch>;
}

interface Plans {
  readonly before: Agenda;
  readonly after: Agenda;
  readonly vehicles: Iterable<VehicleId>;
  /** What had begun by then was looked at, or said to be missed. */
  readonly lookedAt: Instant;
}

/**
 * Everything was planned anew, after a restart, a failed commit, or because the clock was set back: a window that was
 * planned before keeps its marks. One that was not, and had begun by the last look, is marked as seen: it was acted on
 * or said to be missed then, and must not be said to be missed once more.
 */
export function carryOver({ before, after, vehicles, lookedAt }: Plans, { seen, nowhere }: Marks): void {
  for (const vehicle of vehicles) {
    const planned = before.of(vehicle);
    for (const dispatch of after.of(vehicle)) {
      const twin = planned.find((other) => isSameWindow(other, dispatch));
      if (twin === undefined ? dispatch.from <= lookedAt : seen.has(twin)) seen.add(dispatch);
      if (twin !== undefined && nowhere.has(twin)) nowhere.add(dispatch);
    }
  }
}

const isSameWindow = (a: Dispatch, b: Dispatch): boolean =>
  a.event.id === b.event.id && a.from === b.from && a.until === b.until;

/** One event was planned anew: a window that was acted on under an earlier revision is not missed under the next. */
export function markRevised(
  before: readonly Dispatch[],
  after: readonly Dispatch[],
  seen: WeakSet<Dispatch>,
): void {
  const acted = new Set(before.filter((dispatch) => seen.has(dispatch)).map(beginning));
  if (acted.size === 0) return;
  for (const dispatch of after) if (acted.has(beginning(dispatch))) seen.add(dispatch);
}

/** One vehicle's start of one event. */
const beginning = ({ vehicle, from }: Dispatch): string => `${from} ${vehicle}`;
