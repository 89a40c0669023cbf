import type { ChargerId, Instant, VehicleId } from "../units.ts";
import { vehicleId } from "../units.ts";
import type { Telemetry } from "./telemetry.ts";
import type { Vehicle } from "./vehicle.ts";

/** Who is on a charger, and who says so (DESIGN 5.5). */
export type Occupant =
  | { readonly kind: "vehicle"; readonly vehicle: VehicleId; readonly source: "telemetry" | "fixed" }
  /** A vehicle that the configuration does not know: no dispatch applies. */
  | { readonly kind: "unknown"; readonly said: string }
  | { readonly kind: "nobody" };

/** What a charger last said of the vehicle on it, and since when. */
type Claim =
  | { readonly kind: "known"; readonly vehicle: VehicleId; readonly since: Instant }
  | { readonly kind: "stranger"; readonly said: string; readonly since: Instant };

const NOBODY: Occupant = { kind: "nobody" };

/**
 * Which vehicle is where: identities from telemetry over fixed bindings, the newer claim over the older where two
 * chargers claim the same vehicle. A message that says nothing of identity leaves the last word standing.
 */
export class Plugs {
  readonly #fixed = new Map<ChargerId, VehicleId[]>();
  readonly #vehicles = new Map<VehicleId, Vehicle>();
  readonly #byIdentity = new Map<string, VehicleId>();
  readonly #claims = new Map<ChargerId, Claim>();
  /** The charger whose claim on a vehicle is the newest. */
  readonly #seat = new Map<VehicleId, ChargerId>();

  constructor(vehicles: Iterable<Vehicle>) {
    for (const vehicle of vehicles) {
      this.#vehicles.set(vehicle.id, vehicle);
      if (vehicle.charger !== null) {
        this.#fixed.set(vehicle.charger, [...(this.#fixed.get(vehicle.charger) ?? []), vehicle.id]);
      }
      for (const { kind, value } of vehicle.identities)
        this.#byIdentity.set(identityKey(kind, value), vehicle.id);
    }
  }

  /** Takes in one telemetry message; answers the chargers whose occupant it may have changed. */
  note(
    charger: ChargerId,
    telemetry: Telemetry,
    at: Instant,
  ): { touched: ChargerId[]; warning: string | null } {
    const before = this.#claims.get(charger);
    const claim = this.#claimOf(before, telemetry, at);
    if (claim === before) return { touched: [], warning: null };
    const touched = new Set([charger]);
    if (before?.kind === "known")
      for (const other of this.#leave(before.vehicle, charger)) touched.add(other);
    if (claim === undefined) this.#claims.delete(charger);
    else this.#claims.set(charger, claim);
    let warning: string | null = null;
    if (claim?.kind === "known") {
      const seat = this.#seat.get(claim.vehicle);
      const home = this.#vehicles.get(claim.vehicle)?.charger ?? null;
      if (seat !== undefined && seat !== charger) {
        touched.add(seat);
        warning = `vehicle ${claim.vehicle} is claimed by ${seat} and ${charger}: the newer report, ${charger}, wins`;
      }
      if (home !== null) touched.add(home);
      this.#seat.set(claim.vehicle, charger);
    }
    return { touched: [...touched], warning };
  }

  /** Who was on a charger before a restart: believed until the charger says otherwise, as its setpoint still stands. */
  recall(charger: ChargerId, vehicle: VehicleId, since: Instant): void {
    const known = this.#vehicles.get(vehicle);
    if (known === undefined || known.charger === charger || this.#claims.has(charger)) return;
    this.#claims.set(charger, { kind: "known", vehicle, since });
    this.#seat.set(vehicle, charger);
  }

  at(charger: ChargerId): Occupant {
    const claim = this.#claims.get(charger);
    if (claim?.kind === "stranger") return { kind: "unknown", said: claim.said };
    if (claim?.kind === "known") {
      if (this.#seat.get(claim.vehicle) !== charger) return NOBODY;
      return { kind: "vehicle", vehicle: claim.vehicle, source: "telemetry" };
    }
    const [bound, second] = this.#fixed.get(charger) ?? [];
    // Two vehicles fixed to one charger: only their identities can tell which of them it is.
    if (bound === undefined || second !== undefined || this.#seat.has(bound)) return NOBODY;
    return { kind: "vehicle", vehicle: bound, source: "fixed" };
  }

  /** The charger that a vehicle is on; null: nowhere. */
  where(vehicle: VehicleId): ChargerId | null {
    const seat = this.#seat.get(vehicle);
    if (seat !== undefined) return seat;
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    if (home === null) return null;
    const occupant = this.at(home);
    return occupant.kind === "vehicle" && occupant.vehicle === vehicle ? home : null;
  }

  #claimOf(before: Claim | undefined, telemetry: Telemetry, at: Instant): Claim | undefined {
    if (telemetry.state === "unplugged") return undefined;
    const { vehicle, identity } = telemetry;
    const named =
      typeof vehicle === "string" && this.#vehicles.has(vehicleId(vehicle.normalize("NFC")))
        ? vehicleId(vehicle.normalize("NFC"))
        : identity && this.#byIdentity.get(identityKey(identity.kind, identity.value));
    if (named)
      return before?.kind === "known" && before.vehicle === named
        ? before
        : { kind: "known", vehicle: named, since: at };
    const said = vehicle ?? (identity ? `${identity.kind} ${identity.value}` : undefined);
    if (said !== undefined) {
      return before?.kind === "stranger" && before.said === said
        ? before
        : { kind: "stranger", said, since: at };
    }
    const denied = vehicle === null || identity === null;
    return denied ? undefined : before;
  }

  /** A charger gives a vehicle up: the newest of the other claims on it stands again. */
  #leave(vehicle: VehicleId, charger: ChargerId): ChargerId[] {
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    const touched = home === null ? [] : [home];
    if (this.#seat.get(vehicle) !== charger) return touched;
    this.#seat.delete(vehicle);
    let newest: { charger: ChargerId; since: Instant } | undefined;
    for (const [other, claim] of this.#claims) {
      if (other === charger || claim.kind !== "known" || claim.vehicle !== vehicle) continue;
      if (newest === undefined || claim.since > newest.since) newest = { charger: other, since: claim.since };
    }
    if (newest === undefined) return touched;
    this.#seat.set(vehicle, newest.charger);
    return [...touched, newest.charger];
  }
}

/** An EVCC id is the MAC address of the vehicle's modem: makes call it by either name. */
const comparedAs = (kind: string): string => (kind === "evccid" ? "mac" : kind);

/** Identities are compared without regard to case or separators: chargers spell the same MAC in many ways. */
export const identityKey = (kind: string, value: string): string =>
  `${comparedAs(kind.toLowerCase())} ${value.toLowerCase().replaceAll(/[\s:-]/g, "")}`;
