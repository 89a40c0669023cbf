import type { Telemetry } from "../../domain/telemetry.ts";
import {
  type ChargerId,
  type Instant,
  type VehicleId,
  vehicleId,
  after,
  later,
  minutes,
} from "../../domain/units.ts";
import { type Binding, identityKey, type Vehicle } from "../../domain/vehicle.ts";
import { chargingPhases } from "../decide/limits.ts";

/** A silent charger may still receive commands, an offline one does not. */
export type Away = "offline" | "silent";

/** A charger names a vehicle of the configuration, or a person does for it. */
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
  /** Binding by a person. Null: the charger names the vehicle itself. */
  readonly binding: Binding | null;
}

/** A vehicle that the configuration does not know: no dispatch applies. */
export interface UnknownOccupant {
  readonly kind: "unknown";
  readonly identity: string;
}

/**
 * `kept`: the vehicle counts at another charger, but may still be at this one: it has not reported unplugged, or it is
 * silent and named the vehicle last. The limit holds at both.
 */
type Source = "telemetry" | "person" | "fixed" | "kept";

/** The vehicle on a charger, and the source of that. */
export type Occupant =
  | { readonly kind: "vehicle"; readonly vehicle: VehicleId; readonly source: Source }
  | UnknownOccupant
  | { readonly kind: "nobody" };

/** Effect of a message or of a person on the occupants. */
export interface Noted {
  /** Chargers whose occupant may have changed. */
  readonly affectedChargers: ChargerId[];
  readonly warning: string | null;
}

/** The occupant by one message. Undefined: not reported. */
export type IdentityReport = Pick<Known, "kind" | "vehicle"> | UnknownOccupant | "nobody" | undefined;

/** The vehicles of the configuration, by their ids and identities. */
export class VehicleIdentities {
  readonly #vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly #ids = new Map<string, VehicleId>();

  constructor(vehicles: ReadonlyMap<VehicleId, Vehicle>) {
    this.#vehicles = vehicles;
    for (const { id, identities } of vehicles.values())
      for (const { kind, value } of identities) this.#ids.set(identityKey(kind, value), id);
  }

  /** `binding`: a charger that still cannot identify its vehicle does not contradict the person who named it. */
  reportOf(telemetry: Telemetry, binding: Binding | null): IdentityReport {
    const report = this.#reportOf(telemetry);
    if (binding === null || report === undefined) return report;
    if (report === "nobody") return telemetry.state === "unplugged" ? report : undefined;
    return report.kind === "unknown" && report.identity === binding.identity ? undefined : report;
  }

  #reportOf(telemetry: Telemetry): IdentityReport {
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

/** The last report of each charger about its occupant, found also by the vehicle that it names. */
export class IdentityClaims extends Map<ChargerId, Known | UnknownOccupant> {
  readonly #naming = new Map<VehicleId, readonly Known[]>();

  /** The claims on a vehicle, oldest first. A site has 20,000 chargers, and a vehicle a claim or two. */
  naming(vehicle: VehicleId): readonly Known[] {
    return this.#naming.get(vehicle) ?? [];
  }

  override set(charger: ChargerId, claim: Known | UnknownOccupant): this {
    this.delete(charger);
    if (claim.kind === "known") this.#naming.set(claim.vehicle, [...this.naming(claim.vehicle), claim]);
    return super.set(charger, claim);
  }

  override delete(charger: ChargerId): boolean {
    const claim = this.get(charger);
    if (claim?.kind === "known") {
      const others = this.naming(claim.vehicle).filter((other) => other !== claim);
      if (others.length === 0) this.#naming.delete(claim.vehicle);
      else this.#naming.set(claim.vehicle, others);
    }
    return super.delete(charger);
  }
}

/** Sentence about two chargers that name the same vehicle. */
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

/** A charger that draws nothing for this long has lost its vehicle. */
const IDLE_FOR = minutes(1);
/** Watts. Standby electronics draw less. */
const CHARGING_WATTS = 200;

interface Kept {
  readonly vehicle: VehicleId;
  /** Start of drawing nothing. Null: the charger draws, or does not report. */
  idleSince: Instant | null;
  /** Last evaluation that found the charger limited. */
  limitedAt: Instant;
}

const NONE: ReadonlySet<ChargerId> = new Set();

/**
 * Chargers that keep the limit of a vehicle that another charger claims.
 * A claim elsewhere cannot free a bay. The bay itself must report unplugged, or draw nothing for a minute.
 */
export class KeptLimits {
  readonly #kept = new Map<ChargerId, Kept>();
  readonly #chargersOf = new Map<VehicleId, ReadonlySet<ChargerId>>();

  /** The vehicle whose limit this charger keeps; null: none. */
  of(charger: ChargerId): VehicleId | null {
    return this.#kept.get(charger)?.vehicle ?? null;
  }

  chargersOf(vehicle: VehicleId): ReadonlySet<ChargerId> {
    return this.#chargersOf.get(vehicle) ?? NONE;
  }

  keep(charger: ChargerId, vehicle: VehicleId, now: Instant): void {
    this.drop(charger);
    this.#kept.set(charger, { vehicle, idleSince: null, limitedAt: now });
    this.#chargersOf.set(vehicle, new Set([...this.chargersOf(vehicle), charger]));
  }

  drop(charger: ChargerId): boolean {
    const vehicle = this.of(charger);
    if (vehicle === null) return false;
    const others = new Set([...this.chargersOf(vehicle)].filter((other) => other !== charger));
    if (others.size === 0) this.#chargersOf.delete(vehicle);
    else this.#chargersOf.set(vehicle, others);
    return this.#kept.delete(charger);
  }

  /** Records whether the charger draws. Null: not known, nothing changes. */
  draws(charger: ChargerId, isDrawing: boolean | null, now: Instant): void {
    const kept = this.#kept.get(charger);
    if (kept === undefined || isDrawing === null) return;
    kept.idleSince = isDrawing ? null : earliest(kept.idleSince, now);
  }

  /** An evaluation found the charger limited. */
  limited(charger: ChargerId, now: Instant): void {
    const kept = this.#kept.get(charger);
    if (kept !== undefined) kept.limitedAt = later(kept.limitedAt, now);
  }

  /** Last evaluation that found the charger limited. Null: it keeps no limit. */
  limitedAt(charger: ChargerId): Instant | null {
    return this.#kept.get(charger)?.limitedAt ?? null;
  }

  /** Time at which the charger has drawn nothing for long enough. Null: it draws, or keeps no limit. */
  idleAt(charger: ChargerId): Instant | null {
    const since = this.#kept.get(charger)?.idleSince ?? null;
    return since === null ? null : after(since, IDLE_FOR);
  }
}

/** A time in the future comes from a clock that was set back. */
const earliest = (since: Instant | null, now: Instant): Instant =>
  since === null || since > now ? now : since;

/** True: a vehicle draws, by this message. Null: not reported. */
export function isDrawing({ currentsA, powerW }: Omit<Telemetry, "at">): boolean | null {
  if (currentsA === undefined && powerW === undefined) return null;
  return chargingPhases(currentsA) !== null || Math.abs(powerW ?? 0) >= CHARGING_WATTS;
}
