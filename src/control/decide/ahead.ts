import type { Charger } from "../../domain/charger.ts";
import { type CommandRecord, reallySent } from "../../domain/command.ts";
import { deliveredWh, endOf, type Hold, periodEnd } from "../../domain/hold.ts";
import { type Desired, levelOf } from "../../domain/setpoint.ts";
import {
  after,
  type ChargerId,
  earlier,
  type EventId,
  type Instant,
  instant,
  isOpenAt,
  millis,
  type VehicleId,
  type Window,
} from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import { applyingHold, type Holds } from "../holds/holds.ts";
import type { Dispatch } from "../schedule/expand.ts";
import { RankedInForce } from "../schedule/vehiclePlan.ts";
import type { ControlState } from "../state.ts";
import { atRest, mostOf, wattsPerAmpere } from "./limits.ts";
import { expectedVerdict } from "./verdict.ts";

/** A time within which a charger allows the same power. Powers in W. */
export interface AllowedStretch extends Window {
  readonly allowedW: number;
  /** Without any event: by the hold that applies, or the most that charger and vehicle allow. */
  readonly withoutEventsW: number;
  /** Null: no event applies. */
  readonly event: EventId | null;
  /** Null: no hold applies. */
  readonly hold: Hold | null;
}

/** Cap on stretches. What follows the last one is not planned any more. */
const MOST = 1_000;
const HOUR_MS = 3_600_000;

/** Largest power that charger and vehicle allow, in W. Infinity: no limit is configured. */
export function mostWatts(charger: Charger, vehicle: Vehicle): number {
  const most = mostOf(charger, vehicle);
  return most === null ? Infinity : inWatts(levelOf(most), charger, vehicle, Infinity);
}

/** `released`: the power of a charger that decides by itself. */
export function inWatts(desired: Desired, charger: Charger, vehicle: Vehicle, released: number): number {
  switch (desired.kind) {
    case "current":
      return Math.max(0, desired.amperes * wattsPerAmpere(charger, vehicle, null));
    case "power":
      return Math.max(0, desired.watts);
    case "pause":
      return 0;
    case "release":
      return released;
  }
}

/** Assumptions of a view ahead, beside the plan. */
export interface Assumed {
  /** Most that the vehicle draws, W, for holds that end after an energy. */
  readonly drawsW?: number;
  /** A hold that does not count. */
  readonly ignored?: Hold["id"] | null;
  /** A hold that counts as the newest, whether it is open or not. */
  readonly added?: Hold | null;
}

/**
 * The power that a vehicle is allowed on a charger, from now on, by the plan: events, holds and limits. Declared limits
 * apply, and the vehicle is taken to stay.
 */
export function* allowedAhead(
  state: ControlState,
  charger: Charger,
  vehicle: Vehicle,
  { from, until }: Window,
  { drawsW = Infinity, ignored = null, added = null }: Assumed = {},
): Generator<AllowedStretch> {
  const most = mostWatts(charger, vehicle);
  const record = state.commands.get(charger.id);
  const sent = record === undefined ? null : reallySent(record);
  const observesUntil = observingUntil(state, until);
  const inObserve = observedWatts(state, charger, vehicle, sent, most);
  const planned = observesUntil === until ? [] : state.agenda.of(vehicle.id);
  const dispatches = new DispatchesAhead(planned, state.settings, from);
  const { inForce } = dispatches;
  const energy = new EnergyHolds(state);
  /** A limited charger gets the level configured for the end. An untouched one decides by itself. */
  let isLimited =
    observesUntil !== until &&
    sent !== null &&
    sent.command.desired.kind !== "release" &&
    sent.command.cause !== "operator";
  let at = from;
  for (let count = 0; at < until && count < MOST; count += 1) {
    dispatches.moveTo(at);
    if (observesUntil !== null && at < observesUntil) {
      yield {
        from: at,
        until: observesUntil,
        allowedW: inObserve,
        withoutEventsW: inObserve,
        event: null,
        hold: null,
      };
      at = observesUntil;
      continue;
    }
    const others = holdsAhead(state.holds, charger.id, vehicle.id, at).filter(({ id }) => id !== ignored);
    const over = withNewest(others, added, at).filter((hold) => !energy.isReached(hold));
    const found = expectedVerdict(charger, vehicle, inForce, applyingHold(over, inForce));
    const { winner, hold } = found;
    if (winner !== null) isLimited = true;
    else if (hold !== null) isLimited = false;
    const rest =
      isLimited && winner === null ? inWatts(atRest(charger, vehicle), charger, vehicle, most) : most;
    const allowedW = Math.min(most, inWatts(found.desired, charger, vehicle, rest));
    const heldW = hold?.level == null || winner !== null ? most : allowedW;
    const next = over.map(endOf).reduce(earlier, earlier(until, dispatches.nextChange));
    const reached = energy.endWithin(over, Math.min(allowedW, drawsW), { from: at, until: next });
    yield {
      from: at,
      until: reached,
      allowedW,
      withoutEventsW: heldW,
      event: winner?.event.id ?? null,
      hold,
    };
    at = reached;
  }
}

/** Holds over a charger at a later moment. A hold until events ends with those that are known now, unless they are extended. */
export const holdsAhead = (
  holds: Holds,
  charger: ChargerId,
  vehicle: VehicleId | null,
  at: Instant,
): readonly Hold[] => holds.over(charger, vehicle, at).filter((hold) => at < endOf(hold));

/** A hold of the site yields to narrower ones. */
function withNewest(over: readonly Hold[], added: Hold | null, at: Instant): readonly Hold[] {
  if (added === null || at >= endOf(added)) return over;
  if (added.scope.kind !== "site") return [added, ...over];
  const narrow = over.filter(({ scope }) => scope.kind !== "site");
  return [...narrow, added, ...over.slice(narrow.length)];
}

/** Moment until which the site only observes, at most `until`. Null: it drives. */
function observingUntil({ settings, mode }: ControlState, until: Instant): Instant | null {
  if (settings.mode === "observe") return until;
  return mode.period === null ? null : earlier(periodEnd(mode.period), until);
}

/** The power that a charger allows while the site observes: all of it, or the level that it was left with. */
function observedWatts(
  { settings }: ControlState,
  charger: Charger,
  vehicle: Vehicle,
  sent: CommandRecord | null,
  most: number,
): number {
  return settings.mode === "observe" || settings.onObserve === "release" || sent === null
    ? most
    : Math.min(most, inWatts(sent.command.desired, charger, vehicle, most));
}

/** The power of the command that a charger stands at, in W. Null: none was published. */
export function commandedWatts(
  { commands }: ControlState,
  charger: Charger,
  vehicle: Vehicle,
): number | null {
  const record = commands.get(charger.id);
  const sent = record === undefined ? null : reallySent(record);
  return sent === null ? null : inWatts(sent.command.desired, charger, vehicle, mostWatts(charger, vehicle));
}

/** The dispatches of a vehicle that are in force, as time goes on. */
class DispatchesAhead {
  readonly inForce: RankedInForce;
  readonly #open = new Set<Dispatch>();
  /** The latest first. */
  readonly #coming: Dispatch[];

  constructor(dispatches: readonly Dispatch[], settings: ControlState["settings"], from: Instant) {
    this.inForce = new RankedInForce(settings);
    this.#coming = dispatches.filter((dispatch) => dispatch.from > from).toSorted((a, b) => b.from - a.from);
    for (const dispatch of dispatches) if (isOpenAt(dispatch, from)) this.#begin(dispatch);
  }

  /** Moves to the same moment or a later one. */
  moveTo(at: Instant): void {
    for (let next = this.#coming.at(-1); next !== undefined && next.from <= at; next = this.#coming.at(-1)) {
      this.#coming.pop();
      this.#begin(next);
    }
    for (const dispatch of this.#open)
      if (dispatch.until <= at) {
        this.inForce.delete(dispatch);
        this.#open.delete(dispatch);
      }
  }

  /** The next moment at which one begins or ends. Infinity: none. */
  get nextChange(): Instant {
    let next = this.#coming.at(-1)?.from ?? instant(Infinity);
    for (const { until } of this.#open) next = earlier(next, until);
    return next;
  }

  #begin(dispatch: Dispatch): void {
    this.inForce.add(dispatch);
    this.#open.add(dispatch);
  }
}

/** Holds that end after an energy, as it is delivered along the plan. */
class EnergyHolds {
  readonly #state: ControlState;
  /** Energy that is left, in Wh, by the id of the hold. */
  readonly #left = new Map<string, number>();

  constructor(state: ControlState) {
    this.#state = state;
  }

  isReached(hold: Hold): boolean {
    return this.#leftOf(hold) <= 0;
  }

  /** The end of a stretch, earlier where the energy of a hold is delivered before. */
  endWithin(over: readonly Hold[], watts: number, { from, until }: Window): Instant {
    const energies = over.filter(({ end }) => end.kind === "energy");
    if (energies.length === 0 || watts <= 0) return until;
    const least = Math.min(...energies.map((hold) => this.#leftOf(hold)));
    const span = Math.ceil((least / watts) * HOUR_MS);
    const end = from + span < until ? after(from, millis(Math.max(1, span))) : until;
    for (const hold of energies)
      this.#left.set(hold.id, this.#leftOf(hold) - ((end - from) / HOUR_MS) * watts);
    return end;
  }

  #leftOf({ id, end }: Hold): number {
    if (end.kind !== "energy") return Infinity;
    const known = this.#left.get(id);
    if (known !== undefined) return known;
    const { meter, wh } = end;
    const reading = this.#state.presence.of(meter.charger).telemetry?.[meter.register] ?? meter.fromWh;
    return wh - deliveredWh(meter, reading);
  }
}
