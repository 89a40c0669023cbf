import type { Telemetry } from "../../domain/telemetry.ts";
import { type ChargerId, type Instant, type VehicleId, vehicleId } from "../../domain/units.ts";
import { identityKey, type Vehicle } from "../../domain/vehicle.ts";

/** A silent charger may still receive commands, an offline one does not. */
export type Away = "offline" | "silent";

/** A charger names a vehicle of the configuration. */
export interface Known {
  readonly kind: "known";
  readonly charger: ChargerId;
  readonly vehicle: VehicleId;
  /** Newest report of this claim, by the charger's own clock. */
  at: Instant;
  /** Known from a stored command only. The charger has not reported it in this run. */
  recalled: boolean;
  /** Why the claim does not count against the vehicle's own charger. Null: the charger is there. */
  away: Away | null;
}

/** A vehicle that the configuration does not know: no dispatch applies. */
export interface UnknownOccupant {
  readonly kind: "unknown";
  readonly identity: string;
}

/** The occupant by one message. Undefined: not reported. */
export type IdentityReport = Pick<Known, "kind" | "vehicle"> | UnknownOccupant | "nobody" | undefined;

/** The vehicles of the configuration, by their ids and identities. */
export class VehicleIdentities {
  readonly #vehicles = new Set<VehicleId>();
  readonly #ids = new Map<string, VehicleId>();

  constructor(vehicles: Iterable<Vehicle>) {
    for (const { id, identities } of vehicles) {
      this.#vehicles.add(id);
      for (const { kind, value } of identities) this.#ids.set(identityKey(kind, value), id);
    }
  }

  reportOf(telemetry: Telemetry): IdentityReport {
    if (telemetry.state === "unplugged") return "nobody";
    const { vehicle, identity } = telemetry;
    const named =
      typeof vehicle === "string" && this.#vehicles.has(vehicleId(vehicle.normalize("NFC")))
        ? vehicleId(vehicle.normalize("NFC"))
        : identity && this.#ids.get(identityKey(identity.kind, identity.value));
    if (named) return { kind: "known", vehicle: named };
    const unknownId = vehicle ?? (identity ? `${identity.kind} ${identity.value}` : undefined);
    if (unknownId !== undefined) return { kind: "unknown", identity: unknownId };
    return vehicle === null || identity === null ? "nobody" : undefined;
  }
}

/** Two chargers name the same vehicle. */
export const conflict = (winner: Known, loser: Known): string =>
  `vehicle ${winner.vehicle} is claimed by ${loser.charger} and ${winner.charger}: the newer report, ${winner.charger}, wins`;

/** A report repeats the claim. */
export function isSame(
  claim: Known | UnknownOccupant | undefined,
  report: Exclude<IdentityReport, undefined>,
): boolean {
  if (claim === undefined || report === "nobody") return claim === undefined && report === "nobody";
  if (claim.kind === "known") return report.kind === "known" && claim.vehicle === report.vehicle;
  return report.kind === "unknown" && claim.identity === report.identity;
}
