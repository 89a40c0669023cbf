import type { Desired } from "../domain/setpoint.ts";
import type { ChargerState, Telemetry } from "../domain/telemetry.ts";
import {
  after,
  earlier,
  type Instant,
  type Millis,
  amperes,
  between,
  instant,
  type Amperes,
  type ChargerId,
} from "../domain/units.ts";
import type { Identity } from "../domain/vehicle.ts";

/** What a charger says to an order. `value`: what it will hold to, in the order's own unit; null for pause and release. */
export type Acceptance =
  | { readonly accepted: true; readonly charger: SimulatedCharger; readonly value: number | null }
  | { readonly accepted: false; readonly reason: string };

/** The lease counts from the receipt; `until` is a moment. Null until: the lease alone. */
export const orderExpires = (received: Instant, until: Instant | null, lease: Millis): Instant =>
  until === null ? after(received, lease) : earlier(until, after(received, lease));

const isOlder = (order: Pick<Order, "epoch" | "seq">, last: Order): boolean =>
  order.epoch < last.epoch || (order.epoch === last.epoch && order.seq < last.seq);

function held(charger: SimulatedCharger, order: Order): number | null {
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

/** Takes an order with (epoch, seq) not lower than its last; the same one again renews its lease (DESIGN 5.6). */
export function accept(before: SimulatedCharger, order: Order, now: Instant): Acceptance {
  const charger = step(before, now);
  const { order: last } = charger;
  if (last && isOlder(order, last))
    return { accepted: false, reason: `older than ${last.epoch}-${last.seq}` };
  if (order.expires <= now) return { accepted: false, reason: "its time has passed" };
  const ordered = { ...charger, order };
  const level = asked(ordered, order);
  if (!Number.isFinite(level) || level < 0) return { accepted: false, reason: "not a level" };
  return { accepted: true, charger: ordered, value: held(ordered, order) };
}

/** What the charger would say of itself (DESIGN 6.2). */
export function stateOf(charger: SimulatedCharger): ChargerState {
  if (!charger.vehicle) return "unplugged";
  if (charger.vehicle.soc >= 100) return "finished";
  if (charger.drawn > 0) return "charging";
  return limitOf(charger) === 0 ? "paused" : "connected";
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/** The telemetry message of the charger as it stands. */
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
function asked({ traits }: SimulatedCharger, order: Order): number {
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
