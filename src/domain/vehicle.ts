import type { Amperes, ChargerId, Instant, VehicleId, Watts } from "./units.ts";

/**
 * Identity of a vehicle as a charger reports it, e.g. `{ kind: "mac", value: "02:aa:bb:00:00:01" }`, in lower case.
 */
export interface Identity {
  readonly kind: string;
  readonly value: string;
}

/** A vehicle of the configuration. */
export interface Vehicle {
  readonly id: VehicleId;
  readonly name: string;
  /** Fixed binding. Null: only telemetry can locate the vehicle. */
  readonly charger: ChargerId | null;
  readonly maxCurrent: Amperes | null;
  readonly maxPower: Watts | null;
  /** Phases that it charges on. Null: all phases of the charger. */
  readonly phases: number | null;
  readonly identities: readonly Identity[];
}

/**
 * A person names the vehicle on a charger that cannot identify it. The binding ends when the charger reports unplugged, when it
 * names another vehicle, or when a person takes it back.
 */
export interface Binding {
  readonly charger: ChargerId;
  readonly vehicle: VehicleId;
  /** Identity that the charger reports and no vehicle has. It does not contradict the person. Null: none. */
  readonly identity: string | null;
  /** Name of the person. */
  readonly by: string;
  readonly reason: string;
  readonly since: Instant;
  /** Idempotency key and hash of the request. Null: it had no key. */
  readonly key: string | null;
}

/** An EVCC id is the MAC address of the vehicle's modem. Chargers use either name. */
const comparedAs = (kind: string): string => (kind === "evccid" ? "mac" : kind);

/** Comparison key without case and separators, because chargers format one MAC differently. */
export const identityKey = (kind: string, value: string): string =>
  `${comparedAs(kind.toLowerCase())} ${value.toLowerCase().replaceAll(/[\s:-]/g, "")}`;

type Named = Pick<Vehicle, "id" | "name">;

/** The vehicle with this id, or else those with this name in any case: several may share one. */
export function vehiclesNamed<V extends Named>(vehicles: Iterable<V>, wanted: string): readonly V[] {
  const all = [...vehicles];
  const byId = all.filter(({ id }) => id === wanted);
  const name = wanted.trim().toLowerCase();
  return byId.length > 0 ? byId : all.filter((vehicle) => vehicle.name.toLowerCase() === name);
}

/** The one vehicle that has this id or name. Null: none, or several have the name. */
export function vehicleNamed<V extends Named>(vehicles: Iterable<V>, wanted: string): V | null {
  const [vehicle, second] = vehiclesNamed(vehicles, wanted);
  return second === undefined ? (vehicle ?? null) : null;
}
