import type { KnownEvent } from "../../domain/event.ts";
import type { EventId, Instant, VehicleId } from "../../domain/units.ts";
import type { Agenda } from "./agenda.ts";
import { type Dispatch, type Expansion, expandAfter, type ExpandContext } from "./expand.ts";

/** Cap on cached expansions. Each takes a few megabytes for 20,000 vehicles. */
const MOST = 4;

/** Cache of the latest expansions. An event that is edited often is expanded from its previous expansion. */
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

/** Dispatches that are in the record already, so that they get no second row. */
interface Marks {
  readonly seen: WeakSet<Dispatch>;
  readonly nowhere: WeakSet<Dispatch>;
}

interface Plans {
  readonly before: Agenda;
  readonly after: Agenda;
  readonly vehicles: Iterable<VehicleId>;
  /** Dispatches that began by then were evaluated, or recorded as missed. */
  readonly evaluatedAt: Instant;
}

/**
 * Copies marks after everything was planned again: after a restart, a failed commit, or a clock set back.
 * A window that was planned before keeps its marks.
 * A new window that began before the last evaluation counts as evaluated, so it is not recorded as missed
 * twice.
 */
export function carryOver({ before, after, vehicles, evaluatedAt }: Plans, marks: Marks): void {
  for (const vehicle of vehicles) carryMarks(before.of(vehicle), after.of(vehicle), evaluatedAt, marks);
}

/** Copies the marks of one vehicle, or of one event that was restored after a failed commit. */
export function carryMarks(
  before: readonly Dispatch[],
  after: readonly Dispatch[],
  evaluatedAt: Instant,
  { seen, nowhere }: Marks,
): void {
  const counterparts = new Map(before.map((dispatch) => [windowKey(dispatch), dispatch]));
  for (const dispatch of after) {
    const counterpart = counterparts.get(windowKey(dispatch));
    if (counterpart === undefined ? dispatch.from <= evaluatedAt : seen.has(counterpart)) seen.add(dispatch);
    if (counterpart !== undefined && nowhere.has(counterpart)) nowhere.add(dispatch);
  }
}

/** Key of a window of an event for a vehicle. */
const windowKey = ({ event, vehicle, from, until }: Dispatch): string =>
  `${from} ${until} ${vehicle} ${event.id}`;

/** After an edit, a window that was acted on under an earlier revision is not missed under the next. */
export class Revised {
  /**
   * Dispatches that were acted on and lie ahead again, since the clock was set back. The event may be
   * withdrawn and return in that time.
   */
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
