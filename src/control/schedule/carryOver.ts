import type { KnownEvent } from "../../domain/event.ts";
import type { EventId, Instant, VehicleId } from "../../domain/units.ts";
import type { Agenda } from "./agenda.ts";
import { type Dispatch, type Expansion, expandAfter, type ExpandContext } from "./expand.ts";

/** Each takes a few megabytes for 20,000 vehicles. */
const MOST = 4;

/** The expansions of the events that were expanded last: an event that is edited again and again is worked out from there. */
export class Expansions {
  readonly #newest = new Map<EventId, Expansion>();

  expand(known: KnownEvent, context: ExpandContext): readonly Dispatch[] {
    const { id } = known;
    const expansion = expandAfter(this.#newest.get(id) ?? null, known, context);
    this.#newest.delete(id);
    this.#newest.set(id, expansion);
    for (const oldest of this.#newest.keys().take(Math.max(0, this.#newest.size - MOST)))
      this.#newest.delete(oldest);
    return expansion.dispatches;
  }
}

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
export function carryOver({ before, after, vehicles, lookedAt }: Plans, marks: Marks): void {
  for (const vehicle of vehicles) carryMarks(before.of(vehicle), after.of(vehicle), lookedAt, marks);
}

/** The same for one vehicle, or for one event whose plan was put back after a failed commit. */
export function carryMarks(
  before: readonly Dispatch[],
  after: readonly Dispatch[],
  lookedAt: Instant,
  { seen, nowhere }: Marks,
): void {
  const twins = new Map(before.map((dispatch) => [windowKey(dispatch), dispatch]));
  for (const dispatch of after) {
    const twin = twins.get(windowKey(dispatch));
    if (twin === undefined ? dispatch.from <= lookedAt : seen.has(twin)) seen.add(dispatch);
    if (twin !== undefined && nowhere.has(twin)) nowhere.add(dispatch);
  }
}

/** One window of one event, for one vehicle. */
const windowKey = ({ event, vehicle, from, until }: Dispatch): string =>
  `${from} ${until} ${vehicle} ${event.id}`;

/** One event was planned anew: a window that was acted on under an earlier revision is not missed under the next. */
export class Revised {
  /** What was acted on and lies ahead again, as the clock was set back: the event may go and come in that time. */
  readonly #ahead = new Map<EventId, readonly Dispatch[]>();
  readonly #seen: WeakSet<Dispatch>;

  constructor(seen: WeakSet<Dispatch>) {
    this.#seen = seen;
  }

  mark(event: EventId, before: readonly Dispatch[], after: readonly Dispatch[], now: Instant): void {
    const acted = [
      ...before.filter((dispatch) => this.#seen.has(dispatch)),
      ...(this.#ahead.get(event) ?? []),
    ];
    if (acted.length === 0) return this.forget(event);
    const beginnings = new Map<VehicleId, Dispatch[]>();
    for (const dispatch of acted) {
      const others = beginnings.get(dispatch.vehicle)?.filter(({ from }) => from !== dispatch.from) ?? [];
      beginnings.set(dispatch.vehicle, [...others, dispatch]);
    }
    for (const dispatch of after) {
      const began = beginnings.get(dispatch.vehicle)?.some(({ from }) => from === dispatch.from);
      if (began === true) this.#seen.add(dispatch);
    }
    const ahead = [...beginnings.values()].flat().filter(({ from }) => from > now);
    if (ahead.length > 0) this.#ahead.set(event, ahead);
    else this.#ahead.delete(event);
  }

  forget(event: EventId): void {
    this.#ahead.delete(event);
  }
}
