import type { Telemetry } from "../../domain/telemetry.ts";
import {
  after,
  type ChargerId,
  earlier,
  type Instant,
  later,
  minutes,
  type VehicleId,
  vehicleId,
} from "../../domain/units.ts";
import { identityKey, type Vehicle } from "../../domain/vehicle.ts";
import { KeptLimits } from "./keptLimits.ts";

/** `kept`: another charger claims it, but this one has not said that it is gone, so that its limit stays. */
type Source = "telemetry" | "fixed" | "kept";

/** Who is on a charger, and who says so (DESIGN 5.5). */
export type Occupant =
  | { readonly kind: "vehicle"; readonly vehicle: VehicleId; readonly source: Source }
  /** A vehicle that the configuration does not know: no dispatch applies. */
  | { readonly kind: "unknown"; readonly said: string }
  | { readonly kind: "nobody" };

interface Known {
  readonly kind: "known";
  readonly charger: ChargerId;
  readonly vehicle: VehicleId;
  /** Newest report that stood by it, by the charger's own clock. */
  at: Instant;
  /** Known from a stored command only: the charger did not say so in this run. */
  recalled: boolean;
  /** Its charger is offline or silent, so that it does not count against the vehicle's own charger. */
  isAway: boolean;
}

/** A vehicle that the configuration does not know. */
interface UnknownOccupant {
  readonly kind: "stranger";
  readonly said: string;
}

/** What one message says of who is there; undefined: nothing. */
type IdentityReport = Pick<Known, "kind" | "vehicle"> | UnknownOccupant | "nobody" | undefined;

interface Noted {
  /** Chargers whose occupant may have changed. */
  readonly affectedChargers: ChargerId[];
  readonly warning: string | null;
}

/** Some chargers publish the vehicle identity last. Without one in this time we assume that there is none. */
const IDENTITY_GRACE = minutes(1);
/** Another charger takes over a claim that was not renewed for so long. Two that both go on keep what was. */
const QUIET = minutes(1);

const NOBODY: Occupant = { kind: "nobody" };
const NOTHING_NEW: Noted = { affectedChargers: [], warning: null };

/**
 * Which vehicle is where: identities from telemetry over fixed bindings, the newer claim over the older where two
 * chargers claim the same vehicle. A message that says nothing of identity leaves the last word standing.
 */
export class Occupancy {
  readonly kept = new KeptLimits();
  readonly #fixed = new Map<ChargerId, VehicleId[]>();
  readonly #vehicles = new Map<VehicleId, Vehicle>();
  readonly #byIdentity = new Map<string, VehicleId>();
  /** What each charger last said of the vehicle on it. */
  readonly #identityClaims = new Map<ChargerId, Known | UnknownOccupant>();
  /** The claim on a vehicle that counts. */
  readonly #assign = new Map<VehicleId, Known>();
  /** When each charger's last word of who is there was so. */
  readonly #saidAt = new Map<ChargerId, Instant>();
  /** When each charger first spoke in this run. */
  readonly #heardSince = new Map<ChargerId, Instant>();

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

  /** Applies a message dated by our clock. `isWhole`: it is complete. `isLate`: it counts only if nothing is newer. */
  note(charger: ChargerId, telemetry: Telemetry, now: Instant, isWhole = true, isLate = false): Noted {
    const keptOne = this.#assigned(charger).kind === "nobody" && this.kept.of(charger) !== null;
    const noted = this.#note(charger, telemetry, now, isWhole, isLate);
    const isGone = !isLate && telemetry.state === "unplugged";
    if (!isGone && this.#assigned(charger).kind === "nobody") return noted;
    this.kept.drop(charger);
    return keptOne
      ? { ...noted, affectedChargers: [...new Set([...noted.affectedChargers, charger])] }
      : noted;
  }

  #note(charger: ChargerId, telemetry: Telemetry, now: Instant, isWhole: boolean, isLate: boolean): Noted {
    const heardSince = earlier(this.#heardSince.get(charger) ?? now, now);
    this.#heardSince.set(charger, heardSince);
    const before = this.#identityClaims.get(charger);
    const said = earlier(telemetry.at, now);
    let word = this.#identityReportOf(telemetry);
    if (word !== undefined) {
      const lastSaid = this.#saidAt.get(charger) ?? said;
      if (isLate && said < lastSaid) return NOTHING_NEW;
      this.#saidAt.set(charger, said);
    }
    if (word === undefined && before?.kind === "known" && before.recalled && this.#isBoundOtherwise(before)) {
      if (!isWhole && now < after(heardSince, IDENTITY_GRACE)) return NOTHING_NEW;
      word = "nobody";
      this.kept.drop(charger);
    }
    if (word === undefined || isSame(before, word))
      return before?.kind === "known" && !isLate ? this.#renew(before, said, now) : NOTHING_NEW;
    const touched = new Set([charger]);
    if (before?.kind === "known") for (const other of this.#leave(before)) touched.add(other);
    if (word === "nobody") this.#identityClaims.delete(charger);
    else if (word.kind === "stranger") this.#identityClaims.set(charger, word);
    else {
      const claim: Known = { ...word, charger, at: said, recalled: false, isAway: false };
      this.#identityClaims.set(charger, claim);
      const seat = this.#assign.get(claim.vehicle);
      if (seat !== undefined && said < seat.at)
        return { affectedChargers: [...touched], warning: conflict(seat, claim) };
      const taken = this.#take(claim, seat);
      return {
        affectedChargers: [...new Set([...touched, ...taken.affectedChargers])],
        warning: taken.warning,
      };
    }
    return { affectedChargers: [...touched], warning: null };
  }

  /**
   * Who was on a charger before a restart: believed until the charger speaks, as its setpoint still stands. What
   * telemetry said then and what was fixed then look alike in a command, so it gives way to what is fixed now, if
   * anything is, as soon as the charger speaks and tells no identity.
   */
  recall(charger: ChargerId, vehicle: VehicleId, since: Instant): void {
    const known = this.#vehicles.get(vehicle);
    if (known === undefined || this.#identityClaims.has(charger) || this.#heardSince.has(charger)) return;
    // It is limited for this vehicle, wherever a newer command says that the vehicle is.
    this.kept.keep(charger, vehicle);
    if (known.charger === charger) return;
    const claim: Known = { kind: "known", charger, vehicle, at: since, recalled: true, isAway: false };
    this.#identityClaims.set(charger, claim);
    const seat = this.#assign.get(vehicle);
    if (seat === undefined || seat.at <= since) this.#assign.set(vehicle, claim);
  }

  /** A charger went offline or silent: its claim does not count against the vehicle's own charger any more. */
  depart(charger: ChargerId): readonly ChargerId[] {
    const claim = this.#identityClaims.get(charger);
    if (claim?.kind !== "known" || (this.#vehicles.get(claim.vehicle)?.charger ?? charger) === charger)
      return [];
    claim.isAway = true;
    return this.#assign.get(claim.vehicle) === claim ? [charger, ...this.#leave(claim)] : [];
  }

  /** Chargers whose occupant is known from a stored command only. */
  recalled(): readonly ChargerId[] {
    return [...this.#identityClaims].flatMap(([id, claim]) =>
      claim.kind === "known" && claim.recalled ? [id] : [],
    );
  }

  at(charger: ChargerId): Occupant {
    const assigned = this.#assigned(charger);
    const kept = assigned.kind === "nobody" ? this.kept.of(charger) : null;
    return kept === null ? assigned : { kind: "vehicle", vehicle: kept, source: "kept" };
  }

  /** All chargers that a vehicle concerns: the one it is on, and those that keep its limit. */
  chargersOf(vehicle: VehicleId): readonly ChargerId[] {
    const where = this.where(vehicle);
    return [...new Set([...(where === null ? [] : [where]), ...this.kept.chargersOf(vehicle)])];
  }

  #assigned(charger: ChargerId): Occupant {
    const claim = this.#identityClaims.get(charger);
    if (claim?.kind === "stranger") return { kind: "unknown", said: claim.said };
    if (claim?.kind === "known") {
      if (this.#assign.get(claim.vehicle) !== claim) return NOBODY;
      return { kind: "vehicle", vehicle: claim.vehicle, source: "telemetry" };
    }
    const bound = this.#fixedVehicleOf(charger);
    return bound === null ? NOBODY : { kind: "vehicle", vehicle: bound, source: "fixed" };
  }

  /** The vehicle on a charger by this message alone. Null: none, or an unknown one. Undefined: not reported. */
  reportedVehicle(charger: ChargerId, telemetry: Telemetry): VehicleId | null | undefined {
    const word = this.#identityReportOf(telemetry);
    if (word === undefined) return undefined;
    if (word === "nobody") return this.#fixedVehicleOf(charger);
    return word.kind === "known" ? word.vehicle : null;
  }

  /** The charger that a vehicle is on; null: nowhere. */
  where(vehicle: VehicleId): ChargerId | null {
    const seat = this.#assign.get(vehicle);
    if (seat !== undefined) return seat.charger;
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    if (home === null) return null;
    const occupant = this.#assigned(home);
    return occupant.kind === "vehicle" && occupant.vehicle === vehicle ? home : null;
  }

  /** Whose place it is, unless that vehicle is said to be elsewhere. */
  #fixedVehicleOf(charger: ChargerId): VehicleId | null {
    const [bound, second] = this.#fixed.get(charger) ?? [];
    // Two vehicles fixed to one charger: only their identities can tell which of them it is.
    return bound === undefined || second !== undefined || this.#assign.has(bound) ? null : bound;
  }

  /** After the clock was set back: what was said later than now counts as said now, or nothing newer would come for long. */
  onClockMovedBack(now: Instant): void {
    for (const claim of this.#identityClaims.values())
      if (claim.kind === "known") claim.at = earlier(claim.at, now);
    for (const [charger, at] of this.#saidAt) this.#saidAt.set(charger, earlier(at, now));
  }

  #identityReportOf(telemetry: Telemetry): IdentityReport {
    if (telemetry.state === "unplugged") return "nobody";
    const { vehicle, identity } = telemetry;
    const named =
      typeof vehicle === "string" && this.#vehicles.has(vehicleId(vehicle.normalize("NFC")))
        ? vehicleId(vehicle.normalize("NFC"))
        : identity && this.#byIdentity.get(identityKey(identity.kind, identity.value));
    if (named) return { kind: "known", vehicle: named };
    const said = vehicle ?? (identity ? `${identity.kind} ${identity.value}` : undefined);
    if (said !== undefined) return { kind: "stranger", said };
    return vehicle === null || identity === null ? "nobody" : undefined;
  }

  /**
   * A charger stands by its claim. It gets the vehicle (back) from a charger that does not: its own reports, this one
   * and the one before, have to be newer by a minute than the other's last, or two that claim it forever would take turns.
   */
  #renew(claim: Known, said: Instant, now: Instant): Noted {
    const lastAt = claim.at;
    claim.at = earlier(later(lastAt, said), now);
    claim.recalled = false;
    const wasAway = claim.isAway;
    claim.isAway = false;
    const seat = this.#assign.get(claim.vehicle);
    if (seat === undefined && wasAway) return this.#take(claim, seat);
    if (seat === undefined || seat === claim || lastAt <= after(seat.at, QUIET)) return NOTHING_NEW;
    return this.#take(claim, seat);
  }

  #take(claim: Known, seat: Known | undefined): Noted {
    const { charger, vehicle } = claim;
    this.#assign.set(vehicle, claim);
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    const touched = [charger, seat?.charger ?? charger, home ?? charger];
    return {
      affectedChargers: [...new Set(touched)],
      warning: seat === undefined ? null : conflict(claim, seat),
    };
  }

  /** By the configuration as it is now, its vehicle is elsewhere, or another one is there. */
  #isBoundOtherwise({ charger, vehicle }: Known): boolean {
    return this.#fixed.has(charger) || this.#vehicles.get(vehicle)?.charger != null;
  }

  /** A charger gives a vehicle up: the newest of the other claims on it stands again. */
  #leave(left: Known): ChargerId[] {
    const { vehicle } = left;
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    const touched = home === null ? [] : [home];
    if (this.#assign.get(vehicle) !== left) return touched;
    this.#assign.delete(vehicle);
    let newest: Known | undefined;
    for (const claim of this.#identityClaims.values()) {
      if (claim === left || claim.kind !== "known" || claim.vehicle !== vehicle || claim.isAway) continue;
      if (newest === undefined || claim.at > newest.at) newest = claim;
    }
    if (newest === undefined) return touched;
    this.#assign.set(vehicle, newest);
    return [...touched, newest.charger];
  }
}

const conflict = (winner: Known, loser: Known): string =>
  `vehicle ${winner.vehicle} is claimed by ${loser.charger} and ${winner.charger}: the newer report, ${winner.charger}, wins`;

function isSame(
  claim: Known | UnknownOccupant | undefined,
  word: Exclude<IdentityReport, undefined>,
): boolean {
  if (claim === undefined || word === "nobody") return claim === undefined && word === "nobody";
  if (claim.kind === "known") return word.kind === "known" && claim.vehicle === word.vehicle;
  return word.kind === "stranger" && claim.said === word.said;
}
