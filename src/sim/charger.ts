import { isOlder } from "../chargers/native/payload.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerState, Telemetry } from "../domain/telemetry.ts";
import { type Instant, amperes, between, instant, type Amperes, type ChargerId } from "../domain/units.ts";
import type { Identity } from "../domain/vehicle.ts";

/** Answer of a charger to an order. `value`: the accepted level in the order's own unit; null for pause and release. */
export type Acceptance =
  | { readonly accepted: true; readonly charger: SimulatedCharger; readonly value: number | null }
  | { readonly accepted: false; readonly reason: string };

function acceptedValue(charger: SimulatedCharger, order: ReceivedSet): number | null {
  const { phases, voltage } = charger.traits;
  const limit = limitOf(charger);
  switch (order.desired.kind) {
    case "current":
      return limit;
    case "power":
      return Math.min(order.desired.watts, Math.round(limit * phases * voltage));
    case "pause":
    case "release":
      return null;
  }
}

/** Accepts an order whose (epoch, seq) is not lower than the last one. A repeat renews the lease. */
export function accept(before: SimulatedCharger, order: ReceivedSet, now: Instant): Acceptance {
  const charger = step(before, now);
  const { order: last } = charger;
  if (last && isOlder(order, last))
    return { accepted: false, reason: `older than ${last.epoch}-${last.seq}` };
  if (order.expires <= now) return { accepted: false, reason: "its time has passed" };
  const ordered = { ...charger, order };
  const level = currentOf(ordered, order);
  if (!Number.isFinite(level) || level < 0) return { accepted: false, reason: "not a level" };
  return { accepted: true, charger: ordered, value: acceptedValue(ordered, order) };
}

/** State as the charger publishes it in its telemetry. */
export function stateOf(charger: SimulatedCharger): ChargerState {
  if (!charger.vehicle) return "unplugged";
  if (charger.vehicle.soc >= 100) return "finished";
  if (charger.drawn > 0) return "charging";
  return limitOf(charger) === 0 ? "paused" : "connected";
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/** Telemetry message of the charger by its own clock. */
export function telemetryOf(charger: SimulatedCharger): Telemetry {
  const { traits, vehicle, drawn } = charger;
  const phases = Array.from({ length: traits.phases });
  return {
    at: charger.at,
    state: stateOf(charger),
    vehicle: vehicle?.id ?? null,
    identity: vehicle?.identity ?? null,
    powerW: Math.round(drawn * traits.phases * traits.voltage),
    currentsA: phases.map(() => round(drawn, 1)),
    voltagesV: phases.map(() => traits.voltage),
    energyWh: round(charger.energyWh, 1),
    sessionWh: round(charger.sessionWh, 1),
    ...(vehicle && { soc: round(vehicle.soc, 1) }),
    limitA: limitOf(charger),
  };
}

/** The hardware. */
export interface ChargerTraits {
  readonly id: ChargerId;
  readonly phases: number;
  /** Phase to neutral. */
  readonly voltage: number;
  /** Lowest current that it can charge with. Below it the charger pauses. */
  readonly minCurrent: Amperes;
  readonly maxCurrent: Amperes;
  /** Limit while no order holds. */
  readonly ownDefault: Amperes;
  /** Slope of the drawn current, A per second. */
  readonly ramp: number;
}

/** Vehicle at the plug, with the identity that the charger can read. */
export interface PluggedVehicle {
  /** Published as `vehicle`. Null: the charger does not know it. */
  readonly id: string | null;
  readonly identity: Identity | null;
  readonly maxCurrent: Amperes;
  readonly capacityWh: number;
  /** Percent. */
  readonly soc: number;
}

/** Content of a `set` message. `expires`: the earlier of its `until` and the end of its lease. */
export interface ReceivedSet {
  readonly epoch: number;
  readonly seq: number;
  readonly desired: Desired;
  readonly expires: Instant;
}

/** A charger at one moment. */
export interface SimulatedCharger {
  readonly traits: ChargerTraits;
  readonly vehicle: PluggedVehicle | null;
  readonly order: ReceivedSet | null;
  /** Per phase. */
  readonly drawn: Amperes;
  readonly energyWh: number;
  readonly sessionWh: number;
  readonly at: Instant;
}

const HOUR_MS = 3_600_000;

/** A charger that has just been switched on: no order, empty counters. */
export const switchedOn = (
  traits: ChargerTraits,
  vehicle: PluggedVehicle | null,
  now: Instant,
): SimulatedCharger => ({
  traits,
  vehicle,
  order: null,
  drawn: amperes(0),
  energyWh: 0,
  sessionWh: 0,
  at: now,
});

/** Current that an order asks of this charger, A per phase. Neither checked nor bounded. */
function currentOf({ traits }: SimulatedCharger, order: ReceivedSet): number {
  switch (order.desired.kind) {
    case "current":
      return order.desired.amperes;
    case "power":
      return Math.floor((order.desired.watts / traits.phases / traits.voltage) * 10) / 10;
    case "pause":
      return 0;
    case "release":
      return traits.ownDefault;
  }
}

/** Limit now by the charger's own clock, A per phase: its order, or its own default. 0 below its minimum. */
export function limitOf(charger: SimulatedCharger): Amperes {
  const { traits, order, at } = charger;
  const wanted = order && at < order.expires ? currentOf(charger, order) : traits.ownDefault;
  return amperes(wanted < traits.minCurrent ? 0 : Math.min(wanted, traits.maxCurrent));
}

function target(charger: SimulatedCharger): number {
  const { vehicle } = charger;
  return vehicle && vehicle.soc < 100 ? Math.min(limitOf(charger), vehicle.maxCurrent) : 0;
}

/** Advances a span in which only the drawn current changes: a straight ramp, then the target. */
function run(charger: SimulatedCharger, until: Instant): SimulatedCharger {
  const { traits, vehicle, drawn, at } = charger;
  const goal = target(charger);
  const passed = between(at, until);
  const ramping = Math.min(passed, (Math.abs(goal - drawn) / traits.ramp) * 1000);
  const reached = drawn + (Math.sign(goal - drawn) * traits.ramp * ramping) / 1000;
  const ended = ramping < passed ? goal : reached;
  const ampereMs = ((drawn + reached) / 2) * ramping + goal * (passed - ramping);
  const energy = (ampereMs * traits.phases * traits.voltage) / HOUR_MS;
  return {
    ...charger,
    at: until,
    drawn: amperes(ended),
    energyWh: charger.energyWh + energy,
    sessionWh: charger.sessionWh + energy,
    vehicle: vehicle && { ...vehicle, soc: Math.min(100, vehicle.soc + (energy / vehicle.capacityWh) * 100) },
  };
}

/** The charger at `now`. An order that expires before `now` ends exactly then. A clock that went back changes nothing. */
export function step(charger: SimulatedCharger, now: Instant): SimulatedCharger {
  if (now <= charger.at) return charger;
  const expires = charger.order?.expires ?? charger.at;
  const atExpiry = charger.at < expires && expires < now ? run(charger, expires) : charger;
  return run(atExpiry, now);
}

/** Another vehicle, or none. Starts a new session; the drawn current is 0 at once. */
export const plugged = (
  charger: SimulatedCharger,
  vehicle: PluggedVehicle | null,
  now: Instant,
): SimulatedCharger => ({ ...step(charger, now), vehicle, drawn: amperes(0), sessionWh: 0 });

/** After a power cut: the order is lost, the energy counters are kept. */
export const rebooted = (charger: SimulatedCharger, now: Instant): SimulatedCharger => ({
  ...charger,
  order: null,
  drawn: amperes(0),
  at: instant(Math.max(now, charger.at)),
});
