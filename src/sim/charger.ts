import type { Desired } from "../core/control/setpoint.ts";
import type { Identity } from "../core/site/vehicle.ts";
import { amperes, between, instant, type Amperes, type ChargerId, type Instant } from "../core/units.ts";

/** The hardware. */
export interface ChargerTraits {
  readonly id: ChargerId;
  readonly phases: number;
  /** Phase to neutral. */
  readonly voltage: number;
  /** Below this it cannot charge at all: it pauses. */
  readonly minCurrent: Amperes;
  readonly maxCurrent: Amperes;
  /** Where it goes when nobody tells it anything. */
  readonly ownDefault: Amperes;
  /** How fast the drawn current follows, A per second. */
  readonly ramp: number;
}

/** What is plugged in, and what of it the charger can tell. */
export interface PluggedVehicle {
  /** Reported as `vehicle`; null: the charger cannot tell. */
  readonly id: string | null;
  readonly identity: Identity | null;
  readonly maxCurrent: Amperes;
  readonly capacityWh: number;
  /** Percent. */
  readonly soc: number;
}

/** What a `set` message asks (DESIGN 6.2); `expires`: the earlier of its `until` and the end of its lease. */
export interface Order {
  readonly epoch: number;
  readonly seq: number;
  readonly desired: Desired;
  readonly expires: Instant;
}

/** A charger at one moment. */
export interface SimulatedCharger {
  readonly traits: ChargerTraits;
  readonly vehicle: PluggedVehicle | null;
  readonly order: Order | null;
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

/** What an order means for this charger, A per phase; neither checked nor bounded. */
export function asked({ traits }: SimulatedCharger, order: Order): number {
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

/** The current it holds to at its own moment, A: what it was told, or its own default. 0 below its minimum. */
export function limitOf(charger: SimulatedCharger): Amperes {
  const { traits, order, at } = charger;
  const wanted = order && at < order.expires ? asked(charger, order) : traits.ownDefault;
  return amperes(wanted < traits.minCurrent ? 0 : Math.min(wanted, traits.maxCurrent));
}

function target(charger: SimulatedCharger): number {
  const { vehicle } = charger;
  return vehicle && vehicle.soc < 100 ? Math.min(limitOf(charger), vehicle.maxCurrent) : 0;
}

/** Lets time pass in which nothing changes but the drawn current: a straight ramp, then the target. */
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

/** The charger at `now`. An order that expires on the way is left exactly then. A clock that went back: no change. */
export function step(charger: SimulatedCharger, now: Instant): SimulatedCharger {
  if (now <= charger.at) return charger;
  const expires = charger.order?.expires ?? charger.at;
  const turn = charger.at < expires && expires < now ? run(charger, expires) : charger;
  return run(turn, now);
}

/** Another vehicle, or none: a new session. Drawing stops with the plug. */
export const plugged = (
  charger: SimulatedCharger,
  vehicle: PluggedVehicle | null,
  now: Instant,
): SimulatedCharger => ({ ...step(charger, now), vehicle, drawn: amperes(0), sessionWh: 0 });

/** After a power cut the orders are gone, the meter is not. */
export const rebooted = (charger: SimulatedCharger, now: Instant): SimulatedCharger => ({
  ...charger,
  order: null,
  drawn: amperes(0),
  at: instant(Math.max(now, charger.at)),
});
