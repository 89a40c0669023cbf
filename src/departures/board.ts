import { allowedAhead, type AllowedStretch, type Assumed } from "../control/decide/ahead.ts";
import type { Occupant } from "../control/observe/claims.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import {
  type Departure,
  departureKey,
  needView,
  type PlugIn,
  type SetDeparture,
  type VehicleDepartures,
} from "../domain/departure.ts";
import {
  after,
  type ChargerId,
  type Instant,
  iso,
  type Millis,
  millis,
  type VehicleId,
} from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { TimeOfDay } from "../platform/clock.ts";
import { BEYOND, type Forecast, forecast } from "./forecast.ts";
import { paced, pacingOf } from "./pacing.ts";
import { PlugIns, type Sighting } from "./plugIns.ts";
import { assumptions, drawNow, type Measured, situationOf } from "./situation.ts";
import { isForgotten, nextDeparture, weeklyOn } from "./timetable.ts";

/** The next departure of one vehicle, with what is expected. */
export interface Expected extends Forecast {
  readonly vehicle: Vehicle;
  readonly departure: Departure;
  readonly measured: Measured;
  /** Wait of an increase for other chargers. */
  readonly rampWait: Millis;
  /** The plan ahead. Empty: a fact is missing. */
  readonly stretches: readonly AllowedStretch[];
  /** The guard frees the vehicle from events from this moment on. Null: it does not need to, or may not. */
  readonly guardFrom: Instant | null;
  /** Time of the forecast. */
  readonly computedAt: Instant;
}

/** Configuration and stored state of the departures. */
export interface BoardSetup {
  readonly state: ControlState;
  readonly configured: ReadonlyMap<VehicleId, VehicleDepartures>;
  readonly stored: Iterable<SetDeparture>;
  readonly plugIns: ReadonlyMap<ChargerId, PlugIn>;
  readonly timeOfDay: TimeOfDay;
}

const UNCONFIGURED: VehicleDepartures = { weekly: [], batteryWh: null };

/** The departures of a site: those that are set, the next of each vehicle, and its forecast. */
export class DepartureBoard {
  readonly #setup: BoardSetup;
  readonly #set = new Map<VehicleId, readonly SetDeparture[]>();
  /** The next departure of each vehicle, and the time from which on it is the next. */
  readonly #next = new Map<VehicleId, { readonly departure: Departure; readonly since: Instant }>();
  readonly #expected = new Map<VehicleId, Expected>();
  readonly plugIns: PlugIns;
  /** Increases that all limited chargers are owed, in the unit of the ramp. */
  owed = 0;

  constructor(setup: BoardSetup) {
    this.#setup = setup;
    this.plugIns = new PlugIns(setup.plugIns);
    for (const [vehicle, set] of Map.groupBy(setup.stored, (each) => each.vehicle))
      this.#set.set(vehicle, set);
  }

  /** Vehicles that may have a departure. */
  *vehicles(): Generator<VehicleId> {
    for (const [vehicle, { weekly }] of this.#setup.configured) if (weekly.length > 0) yield vehicle;
    for (const vehicle of this.#set.keys()) if (this.#configured(vehicle).weekly.length === 0) yield vehicle;
  }

  /** True: no vehicle has a departure. */
  get isEmpty(): boolean {
    return this.vehicles().next().done === true;
  }

  /** True: the vehicle has a departure, weekly or set. */
  has(vehicle: VehicleId): boolean {
    return this.#configured(vehicle).weekly.length > 0 || this.#set.has(vehicle);
  }

  /** Departures of a vehicle that were set, those that have just passed included. */
  setFor(vehicle: VehicleId): readonly SetDeparture[] {
    return this.#set.get(vehicle) ?? [];
  }

  /** The last weekly departure of a vehicle ahead on this day of the site. Null: none. */
  weeklyOn(vehicle: VehicleId, day: string, now: Instant): Pick<Departure, "at" | "need"> | null {
    return weeklyOn(this.#configured(vehicle).weekly, day, this.#setup.timeOfDay, now);
  }

  /** Replaces all departures of a vehicle that were set. */
  replace(vehicle: VehicleId, departures: readonly SetDeparture[]): void {
    if (departures.length === 0) this.#set.delete(vehicle);
    else this.#set.set(vehicle, departures);
    this.#next.delete(vehicle);
  }

  /** Forgets departures that were set for a day that is over, and returns their keys. */
  forget(now: Instant): readonly string[] {
    const keys: string[] = [];
    for (const [vehicle, all] of this.#set) {
      const past = all.filter((each) => isForgotten(each, now));
      if (past.length === 0) continue;
      keys.push(...past.map(departureKey));
      this.replace(
        vehicle,
        all.filter((each) => !past.includes(each)),
      );
    }
    return keys;
  }

  /** The last forecast of a vehicle. Null: it has no departure, or none was made yet. */
  expected(vehicle: VehicleId): Expected | null {
    return this.#expected.get(vehicle) ?? null;
  }

  /** All forecasts. */
  all(): Iterable<Expected> {
    return this.#expected.values();
  }

  /** Forecasts a vehicle anew. `adjust`: what the guard changes in it. Null: it has no departure. */
  forecast(vehicleId: VehicleId, now: Instant, adjust: (found: Expected) => Expected): Expected | null {
    const found = this.assuming(vehicleId, {}, now);
    const expected = found === null ? null : adjust(found);
    if (expected === null) this.#expected.delete(vehicleId);
    else this.#expected.set(vehicleId, expected);
    return expected;
  }

  /** The forecast of a vehicle with other holds than the open ones. Null: it has no departure. */
  assuming(vehicleId: VehicleId, holds: Omit<Assumed, "drawsW">, now: Instant): Expected | null {
    const { state } = this.#setup;
    const vehicle = state.vehicles.get(vehicleId);
    const departure = this.#nextOf(vehicleId, now);
    if (vehicle === undefined || departure === null) return null;
    const batteryWh = this.#configured(vehicleId).batteryWh;
    const measured = this.#measure(vehicle, departure, batteryWh, now);
    const { charger, remainingWh } = measured;
    const pacing = charger === null ? null : pacingOf(state, charger, vehicle, this.owed, now);
    const stretches =
      charger === null || pacing === null || remainingWh === null
        ? []
        : paced(
            [
              ...allowedAhead(
                state,
                charger,
                vehicle,
                { from: now, until: after(departure.at, BEYOND) },
                { drawsW: measured.drawsW ?? Infinity, ...holds },
              ),
            ],
            pacing,
          );
    const rampWait = pacing?.ramp ?? millis(0);
    const assumed = assumptions(state, measured, rampWait);
    return {
      ...forecast(departure, measured, stretches, state.wallClock, assumed),
      rampWait,
      vehicle,
      departure,
      measured,
      stretches,
      guardFrom: null,
      computedAt: now,
    };
  }

  /** Applies what a charger reports. Returns the plug-in to store; null: to forget; undefined: nothing changed. */
  note(charger: ChargerId): PlugIn | null | undefined {
    const { state } = this.#setup;
    const { telemetry, measuredAt, unpluggedAt } = state.presence.of(charger);
    if (telemetry === null || measuredAt === null) return undefined;
    const occupant = state.occupancy.at(charger);
    const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
    const sighting = { vehicle, namedBy: namedBy(occupant), telemetry, at: measuredAt, unpluggedAt };
    return this.plugIns.note(charger, sighting);
  }

  #configured(vehicle: VehicleId): VehicleDepartures {
    return this.#setup.configured.get(vehicle) ?? UNCONFIGURED;
  }

  #nextOf(vehicle: VehicleId, now: Instant): Departure | null {
    const known = this.#next.get(vehicle);
    // A clock that was set back may lie before an earlier departure.
    if (known !== undefined && known.since <= now && known.departure.at > now) return known.departure;
    const { weekly } = this.#configured(vehicle);
    const next = nextDeparture(vehicle, weekly, this.setFor(vehicle), this.#setup.timeOfDay, now);
    if (next === null) this.#next.delete(vehicle);
    else this.#next.set(vehicle, { departure: next, since: now });
    return next;
  }

  /** The situation, with the power that is drawn now compared with the power that is allowed now. */
  #measure(vehicle: Vehicle, departure: Departure, batteryWh: number | null, now: Instant): Measured {
    const { state } = this.#setup;
    const measured = situationOf(state, this.plugIns, vehicle, departure, batteryWh);
    const { charger, isPluggedIn, isFinished } = measured;
    if (charger === null || !isPluggedIn || isFinished) return measured;
    const [stretch] = allowedAhead(state, charger, vehicle, { from: now, until: departure.at });
    const { ramp } = state.settings.verdict;
    const draws = drawNow(state, this.plugIns, charger, { allowedW: stretch?.allowedW, ramp, now });
    if (draws === undefined) return measured;
    this.plugIns.noteDraw(charger.id, draws);
    return { ...measured, drawsW: draws };
  }
}

/** Time that a vehicle needs for all that it leaves with, in hours. Null: not known. */
export function neededHours({ departure, measured }: Expected, batteryWh: number | null): number | null {
  const { need } = departure;
  const wh = need.kind === "energy" ? need.wh : batteryWh === null ? null : (need.percent / 100) * batteryWh;
  return wh === null || measured.mostW <= 0 ? null : wh / measured.mostW;
}

/** Members of a forecast that a page shows, without the changes of a moment. */
export const shownKey = (expected: Expected | null): string | null =>
  expected === null
    ? null
    : JSON.stringify([
        expected.departure,
        expected.state,
        expected.cause,
        expected.missing,
        Math.round((expected.readyAt ?? 0) / 60_000),
        Math.round((expected.shortWh ?? 0) / 100),
        expected.guardFrom !== null,
      ]);

/** The departure as the API, the stream and the command line show it. */
export function departureView(expected: Expected, now: Instant): { readonly [member: string]: Json } {
  const { vehicle, departure, measured, state, readyAt, shortWh, cause, because, missing, guardFrom } =
    expected;
  const { at, need, source, by } = departure;
  return {
    vehicle: vehicle.id,
    name: vehicle.name,
    charger: measured.charger?.id ?? null,
    at: iso(at),
    need: needView(need),
    source,
    by,
    state,
    leavesInS: Math.round((at - now) / 1000),
    deliveredWh: rounded(measured.deliveredWh),
    soc: measured.soc,
    remainingWh: rounded(measured.remainingWh),
    powerW: rounded(measured.powerW),
    readyAt: readyAt === null ? null : iso(readyAt),
    slackS: readyAt === null ? null : Math.round((at - readyAt) / 1000),
    short: shortWh === null ? null : { energyWh: Math.round(shortWh) },
    cause,
    because,
    missing: [...missing],
    assumed: [...expected.assumed],
    guardFrom: guardFrom === null ? null : iso(guardFrom),
  };
}

const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value));

/** Source of the identity of an occupant. Null: the configuration of the charger, or none. */
function namedBy(occupant: Occupant): Sighting["namedBy"] {
  if (occupant.kind === "unknown") return "telemetry";
  const source = occupant.kind === "vehicle" ? occupant.source : null;
  return source === "person" || source === "telemetry" ? source : null;
}
