import { DueQueue } from "../dueQueue.ts";
import { type EventId, holdsAt, type Instant, type VehicleId } from "../units.ts";
import type { Dispatch } from "./expand.ts";

/**
 * All dispatches of all events, indexed by vehicle, with every boundary in one queue, so that cost follows change:
 * a look touches the vehicles whose boundary is due, not everything stored (DESIGN section 3).
 */
export class Agenda {
  readonly #byVehicle = new Map<VehicleId, Dispatch[]>();
  /** Who has dispatches of an event, so that the event can be replaced without searching every vehicle. */
  readonly #vehiclesOf = new Map<EventId, readonly VehicleId[]>();
  #boundaries = new DueQueue<VehicleId>();
  #count = 0;

  /** How many dispatches are kept: those whose end has not been looked at yet. */
  get size(): number {
    return this.#count;
  }

  /** Everything planned for a vehicle that has not ended, in no particular order. */
  of(vehicle: VehicleId): readonly Dispatch[] {
    return this.#byVehicle.get(vehicle) ?? [];
  }

  /** Everything planned for an event that has not ended. */
  ofEvent(event: EventId): readonly Dispatch[] {
    const vehicles = this.#vehiclesOf.get(event) ?? [];
    return vehicles.flatMap((vehicle) => this.of(vehicle).filter((dispatch) => dispatch.event.id === event));
  }

  holding(vehicle: VehicleId, now: Instant): readonly Dispatch[] {
    return this.of(vehicle).filter((dispatch) => holdsAt(dispatch, now));
  }

  /** The next moment at which something starts or ends for anyone. */
  next(): Instant | undefined {
    return this.#boundaries.next();
  }

  /** Replaces all dispatches of an event; answers the vehicles for whom something holds, or held, right now. */
  replace(event: EventId, dispatches: readonly Dispatch[], now: Instant): Set<VehicleId> {
    const touched = this.#remove(event, now);
    const vehicles = new Set<VehicleId>();
    for (const dispatch of dispatches) {
      if (dispatch.until <= now) continue;
      vehicles.add(dispatch.vehicle);
      this.#add(dispatch, now);
      if (holdsAt(dispatch, now)) touched.add(dispatch.vehicle);
    }
    if (vehicles.size > 0) this.#vehiclesOf.set(event, [...vehicles]);
    this.#tidy();
    return touched;
  }

  /** The vehicles with a boundary at or before now. What has ended is dropped, and returned as it ended. */
  advance(now: Instant): { readonly touched: ReadonlySet<VehicleId>; readonly ended: readonly Dispatch[] } {
    const touched = this.#boundaries.due(now);
    const ended: Dispatch[] = [];
    for (const vehicle of touched) {
      this.#keep(vehicle, (dispatch) => {
        if (dispatch.until > now) return true;
        ended.push(dispatch);
        return false;
      });
    }
    return { touched, ended };
  }

  #add(dispatch: Dispatch, now: Instant): void {
    const planned = this.#byVehicle.get(dispatch.vehicle);
    if (planned === undefined) this.#byVehicle.set(dispatch.vehicle, [dispatch]);
    else planned.push(dispatch);
    // What holds already is looked at because it is new, not because its start has come.
    if (dispatch.from > now) this.#boundaries.push(dispatch.from, dispatch.vehicle);
    this.#boundaries.push(dispatch.until, dispatch.vehicle);
    this.#count += 1;
  }

  #remove(event: EventId, now: Instant): Set<VehicleId> {
    const touched = new Set<VehicleId>();
    for (const vehicle of this.#vehiclesOf.get(event) ?? []) {
      this.#keep(vehicle, (dispatch) => {
        if (dispatch.event.id !== event) return true;
        if (holdsAt(dispatch, now)) touched.add(vehicle);
        return false;
      });
    }
    this.#vehiclesOf.delete(event);
    return touched;
  }

  #keep(vehicle: VehicleId, wanted: (dispatch: Dispatch) => boolean): void {
    const planned = this.#byVehicle.get(vehicle);
    if (planned === undefined) return;
    // Mostly nothing goes: then nothing is copied, as a vehicle may have thousands of dispatches ahead of it.
    const first = planned.findIndex((dispatch) => !wanted(dispatch));
    if (first === -1) return;
    const kept = [...planned.slice(0, first), ...planned.slice(first + 1).filter(wanted)];
    this.#count -= planned.length - kept.length;
    if (kept.length === 0) this.#byVehicle.delete(vehicle);
    else this.#byVehicle.set(vehicle, kept);
  }

  /** Edits leave boundaries behind that mean nothing any more; past as many again as are needed, they are swept. */
  #tidy(): void {
    if (this.#boundaries.size <= 4 * this.#count + 1024) return;
    this.#boundaries = new DueQueue<VehicleId>();
    for (const planned of this.#byVehicle.values()) {
      for (const { from, until, vehicle } of planned) {
        this.#boundaries.push(from, vehicle);
        this.#boundaries.push(until, vehicle);
      }
    }
  }
}
