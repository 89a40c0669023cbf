import { type Instant, type EventId, isOpenAt, instant, later, type VehicleId } from "../../domain/units.ts";
import type { KnownEvent } from "../../domain/event.ts";
import { inSteps, type ResumableTask } from "../../platform/cooperative.ts";
import { DueQueue } from "../../platform/collections.ts";
import { type Dispatch, type ExpandContext, expandAfter, type Expansion } from "./expand.ts";
import {
  type RankSettings,
  type InForce,
  NOTHING_IN_FORCE,
  type Mark,
  hasMark,
  setMark,
  VehiclePlan,
} from "./vehiclePlan.ts";

/** The dispatches of one event, ended ones included until the last of them has ended. */
class EventDispatches {
  readonly dispatches: readonly Dispatch[];
  #open: number;

  constructor(dispatches: readonly Dispatch[]) {
    this.dispatches = dispatches;
    this.#open = dispatches.length;
  }

  /** Counts one ended dispatch. Returns the number of the others. */
  drop(): number {
    this.#open -= 1;
    return this.#open;
  }
}

export interface AgendaStep {
  readonly affectedVehicles: ReadonlySet<VehicleId>;
  /** Dispatches that began since the last step. */
  readonly started: readonly Dispatch[];
  /** Dispatches that ended since then. The agenda has dropped them. */
  readonly ended: readonly Dispatch[];
  /** False: more vehicles have a boundary by now. */
  readonly isComplete: boolean;
}

/**
 * All dispatches of all events, indexed by vehicle and by event, with the next boundary of each vehicle in one queue.
 * Cost follows change: a step reads the vehicles whose boundary is due, not everything stored.
 */
export class Agenda {
  readonly #settings: RankSettings;
  readonly #byVehicle = new Map<VehicleId, VehiclePlan>();
  readonly #byEvent = new Map<EventId, EventDispatches>();
  /** The next boundary of each vehicle. One for each dispatch would be millions. */
  readonly #boundaries = new WakeTimes<VehicleId>();
  #count = 0;
  /** Dispatches that ended by then are dropped. */
  #advancedTo = instant(-Infinity);

  constructor(settings: RankSettings) {
    this.#settings = settings;
  }

  /** Number of dispatches that have not been dropped. */
  get size(): number {
    return this.#count;
  }

  /** All dispatches of a vehicle that have not ended, in no particular order. */
  of(vehicle: VehicleId): readonly Dispatch[] {
    return this.#byVehicle.get(vehicle)?.all() ?? [];
  }

  /** All dispatches of an event that have not ended. */
  ofEvent(event: EventId): readonly Dispatch[] {
    const dispatches = this.#byEvent.get(event)?.dispatches ?? [];
    return dispatches.filter(({ until }) => until > this.#advancedTo);
  }

  /** All dispatches in force for a vehicle. Cost grows with the number that is overruled. */
  allInForce(vehicle: VehicleId, now: Instant): readonly Dispatch[] {
    return this.#byVehicle.get(vehicle)?.allInForce(now) ?? [];
  }

  /** Dispatches in force by rank, read only as far as needed. */
  inForce(vehicle: VehicleId, now: Instant): InForce {
    return this.#byVehicle.get(vehicle)?.ranked(now) ?? NOTHING_IN_FORCE;
  }

  /** Offers each dispatch in force for a vehicle to `isTrue`, until that returns true and it has the mark. */
  mark(kind: Mark, vehicle: VehicleId, now: Instant, isTrue: (dispatch: Dispatch) => boolean): void {
    this.#byVehicle.get(vehicle)?.mark(kind, now, isTrue);
  }

  /** Takes this mark from all dispatches of a vehicle. */
  unmark(kind: Mark, vehicle: VehicleId): void {
    this.#byVehicle.get(vehicle)?.unmark(kind);
  }

  /** The next start or end of any dispatch. */
  next(): Instant | undefined {
    return this.#boundaries.next();
  }

  /** The next start or end for a vehicle after `at`. Infinity: none. */
  nextOf(vehicle: VehicleId, at: Instant): number {
    return this.#byVehicle.get(vehicle)?.next(at) ?? Infinity;
  }

  /**
   * Replaces all dispatches of an event, vehicle by vehicle: each has either the old dispatches or the new ones. Returns the
   * vehicles with a dispatch in force now, before or after. `advance` has to wait.
   */
  *replace(event: EventId, dispatches: readonly Dispatch[], now: Instant): ResumableTask<Set<VehicleId>> {
    const affectedVehicles = new Set<VehicleId>();
    const past = later(now, this.#advancedTo);
    const open = dispatches.filter(({ until }) => until > past);
    const before = yield* byVehicle(this.ofEvent(event));
    const after = yield* byVehicle(open);
    yield* inSteps(after, ([vehicle, added]) => {
      this.#swap(vehicle, before.get(vehicle) ?? [], added, now, affectedVehicles);
      before.delete(vehicle);
    });
    yield* inSteps(before, ([vehicle, removed]) => this.#swap(vehicle, removed, [], now, affectedVehicles));
    if (open.length > 0) this.#byEvent.set(event, new EventDispatches(open));
    else this.#byEvent.delete(event);
    return affectedVehicles;
  }

  /** The vehicles with a boundary at or before now, or `most` of them. Their ended dispatches are dropped and returned. */
  advance(now: Instant, most = Infinity): AgendaStep {
    const affectedVehicles = this.#boundaries.woken(now, most);
    const isComplete = (this.#boundaries.next() ?? Infinity) > now;
    const started: Dispatch[] = [];
    const ended: Dispatch[] = [];
    for (const vehicle of affectedVehicles) {
      const plan = this.#byVehicle.get(vehicle);
      if (plan === undefined) continue;
      for (const dispatch of plan.takeStarted(now)) started.push(dispatch);
      for (const dispatch of plan.dropEnded(now)) ended.push(dispatch);
      if (plan.size === 0) this.#byVehicle.delete(vehicle);
      else this.#boundaries.wake(vehicle, instant(plan.next(now)));
    }
    this.#count -= ended.length;
    for (const { event } of ended) this.#ended(event.id);
    if (isComplete) this.#advancedTo = later(this.#advancedTo, now);
    return { affectedVehicles, started, ended, isComplete };
  }

  #ended(event: EventId): void {
    if (this.#byEvent.get(event)?.drop() === 0) this.#byEvent.delete(event);
  }

  #swap(
    vehicle: VehicleId,
    removed: readonly Dispatch[],
    added: readonly Dispatch[],
    now: Instant,
    affectedVehicles: Set<VehicleId>,
  ): void {
    const plan = this.#byVehicle.get(vehicle) ?? new VehiclePlan(this.#settings);
    for (const dispatch of removed) {
      this.#count -= Number(plan.remove(dispatch));
      if (isOpenAt(dispatch, now)) affectedVehicles.add(vehicle);
    }
    for (const dispatch of added) {
      const { from, until } = dispatch;
      plan.add(dispatch, now);
      // A dispatch in force is evaluated because it is new, so it needs no start boundary.
      this.#boundaries.wake(vehicle, from > now ? from : until);
      this.#count += 1;
      if (isOpenAt(dispatch, now)) affectedVehicles.add(vehicle);
    }
    if (plan.size === 0) this.#byVehicle.delete(vehicle);
    else this.#byVehicle.set(vehicle, plan);
  }
}

function* byVehicle(dispatches: readonly Dispatch[]): ResumableTask<Map<VehicleId, Dispatch[]>> {
  const groups = new Map<VehicleId, Dispatch[]>();
  yield* inSteps(dispatches, (dispatch) => {
    const group = groups.get(dispatch.vehicle);
    if (group === undefined) groups.set(dispatch.vehicle, [dispatch]);
    else group.push(dispatch);
  });
  return groups;
}

/** The next moment that each key asks for: the evaluation of a charger, the end of an event. */
export class WakeTimes<Key extends string> {
  #queue = new DueQueue<Key>();
  readonly #earliest = new Map<Key, Instant>();

  /** Asks for a moment. An earlier request makes a later one superfluous. */
  wake(key: Key, at: Instant): void {
    const asked = this.#earliest.get(key);
    if (asked !== undefined && asked <= at) return;
    this.#earliest.set(key, at);
    this.#queue.push(at, key);
    if (this.#queue.size > 4 * this.#earliest.size + 1024) this.#dropReplaced();
  }

  /** The keys that asked for a moment by now: all of them, or some of them, at most `most`. */
  woken(now: Instant, most = Infinity): ReadonlySet<Key> {
    const due = this.#queue.due(now, most);
    for (const key of due) {
      // A request that an earlier one replaced is still queued. Each answer asks again, so they would multiply.
      if ((this.#earliest.get(key) ?? Infinity) > now) due.delete(key);
      else this.#earliest.delete(key);
    }
    return due;
  }

  next(): Instant | undefined {
    return this.#queue.next();
  }

  #dropReplaced(): void {
    this.#queue = new DueQueue();
    for (const [key, at] of this.#earliest) this.#queue.push(at, key);
  }
}

/** After an edit, a window that was acted on under an earlier revision is not missed under the next. */
export class Revised {
  /**
   * Dispatches that were acted on and lie ahead again, since the clock was set back. The event may be
   * withdrawn and return in that time.
   */
  readonly #ahead = new Map<EventId, readonly Dispatch[]>();

  *marking(
    event: EventId,
    before: readonly Dispatch[],
    after: readonly Dispatch[],
    now: Instant,
  ): ResumableTask<void> {
    const acted = [
      ...before.filter((dispatch) => hasMark(dispatch, "evaluated")),
      ...(this.#ahead.get(event) ?? []),
    ];
    if (acted.length === 0) return this.forget(event);
    yield;
    const beginnings = new Map<VehicleId, Dispatch[]>();
    yield* inSteps(acted, (dispatch) => {
      const others = beginnings.get(dispatch.vehicle)?.filter(({ from }) => from !== dispatch.from) ?? [];
      beginnings.set(dispatch.vehicle, [...others, dispatch]);
    });
    yield* inSteps(after, (dispatch) => {
      const began = beginnings.get(dispatch.vehicle)?.some(({ from }) => from === dispatch.from);
      if (began === true) setMark(dispatch, "evaluated");
    });
    const ahead = [...beginnings.values()].flat().filter(({ from }) => from > now);
    if (ahead.length > 0) this.#ahead.set(event, ahead);
    else this.#ahead.delete(event);
  }

  forget(event: EventId): void {
    this.#ahead.delete(event);
  }
}

/** Cap on cached expansions. Each takes a few megabytes for 20,000 vehicles. */
const MOST = 4;

/** Cache of the latest expansions. An event that is edited often is expanded from its previous expansion. */
export class Expansions {
  readonly #newest = new Map<EventId, Expansion>();

  /** The expansion of a revision that may not be accepted. It is not kept. */
  after(known: KnownEvent, context: ExpandContext): ResumableTask<Expansion> {
    return expandAfter(this.#newest.get(known.id) ?? null, known, context);
  }

  *expanding(known: KnownEvent, context: ExpandContext): ResumableTask<readonly Dispatch[]> {
    const { id } = known;
    const expansion = yield* this.after(known, context);
    this.#newest.delete(id);
    this.#newest.set(id, expansion);
    for (const oldest of this.#newest.keys().take(Math.max(0, this.#newest.size - MOST)))
      this.#newest.delete(oldest);
    return expansion.dispatches;
  }
}
