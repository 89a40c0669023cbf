import type { Telemetry } from "../../domain/telemetry.ts";
import {
  after,
  type ChargerId,
  earlier,
  type Instant,
  later,
  minutes,
  type VehicleId,
} from "../../domain/units.ts";
import type { Binding, Vehicle } from "../../domain/vehicle.ts";
import { AnnouncingMap } from "../changeFeed.ts";
import {
  type Away,
  conflict,
  IdentityClaims,
  type IdentityReport,
  isSame,
  type Known,
  type Noted,
  type Occupant,
  type UnknownOccupant,
  VehicleIdentities,
  KeptLimits,
} from "./claims.ts";

/** Some chargers publish the vehicle identity last. Without one in this time we assume that there is none. */
const IDENTITY_GRACE = minutes(1);
/** Another charger takes over a claim that was not renewed for this long. Two that both renew keep the first. */
const QUIET = minutes(1);

const NOBODY: Occupant = { kind: "nobody" };
const NOTHING_NEW: Noted = { affectedChargers: [], warning: null };

/**
 * Places of vehicles: which one is on which charger.
 * Identities from telemetry count more than fixed bindings.
 * The newer claim wins where two chargers claim the same vehicle.
 * A message without an identity leaves the last report in place.
 */
export class Occupancy {
  readonly kept = new KeptLimits();
  /** The vehicle that is fixed to a charger. Null: several are, so only an identity distinguishes them. */
  readonly #fixed = new Map<ChargerId, VehicleId | null>();
  readonly #vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly #identities: VehicleIdentities;
  /** Last report of each charger about its occupant. */
  readonly #identityClaims = new IdentityClaims();
  /** The winning claim on each vehicle. */
  readonly #assign: Map<VehicleId, Known>;
  /** Silent chargers that named a vehicle last. Some may have lost it since: read it through `#silentOf`. */
  readonly #silentAt = new Map<VehicleId, readonly ChargerId[]>();
  /** Time of each charger's last report about its occupant, by its own clock. */
  readonly #reportedAt = new Map<ChargerId, Instant>();
  /** First message of each charger in this run. */
  readonly #firstMessageAt = new Map<ChargerId, Instant>();

  constructor(vehicles: ReadonlyMap<VehicleId, Vehicle>, onMoved: (vehicle: VehicleId) => void = () => {}) {
    this.#assign = new AnnouncingMap(onMoved);
    this.#vehicles = vehicles;
    for (const { id, charger } of vehicles.values())
      if (charger !== null) this.#fixed.set(charger, this.#fixed.has(charger) ? null : id);
    this.#identities = new VehicleIdentities(vehicles);
  }

  /** Applies a message dated by our clock. `isWhole`: it is complete. `isLate`: it counts only if nothing is newer. */
  note(charger: ChargerId, telemetry: Telemetry, now: Instant, isWhole = true, isLate = false): Noted {
    const hadKept = this.#assigned(charger).kind === "nobody" && this.kept.of(charger) !== null;
    const noted = this.#note(charger, telemetry, now, isWhole, isLate);
    const isGone = !isLate && telemetry.state === "unplugged";
    const assigned = this.#assigned(charger);
    const bound = assigned.kind === "vehicle" && assigned.source === "fixed" ? assigned.vehicle : null;
    // The vehicle of a binding may be elsewhere: after a start its charger may not have reported it yet.
    if (!isGone && (assigned.kind === "nobody" || (bound !== null && bound === this.kept.of(charger))))
      return noted;
    this.kept.drop(charger);
    const affectedChargers = [...new Set([...noted.affectedChargers, charger])];
    return hadKept ? { ...noted, affectedChargers } : noted;
  }

  #note(charger: ChargerId, telemetry: Telemetry, now: Instant, isWhole: boolean, isLate: boolean): Noted {
    const firstMessageAt = earlier(this.#firstMessageAt.get(charger) ?? now, now);
    this.#firstMessageAt.set(charger, firstMessageAt);
    const before = this.#identityClaims.get(charger);
    const reportedAt = earlier(telemetry.at, now);
    let report = this.#identities.reportOf(telemetry, this.bindingAt(charger));
    if (report !== undefined) {
      const lastReportedAt = this.#reportedAt.get(charger) ?? reportedAt;
      if (isLate && reportedAt < lastReportedAt) return NOTHING_NEW;
      this.#reportedAt.set(charger, reportedAt);
    }
    if (report === undefined && this.#isReplacedByBinding(before)) {
      if (!isWhole && now < after(firstMessageAt, IDENTITY_GRACE)) return NOTHING_NEW;
      report = "nobody";
      this.kept.drop(charger);
    }
    if (report === undefined || isSame(before, report))
      return before?.kind === "known" && !isLate ? this.#renew(before, reportedAt, now) : NOTHING_NEW;
    return this.claim(charger, report, reportedAt);
  }

  /** Binding of a vehicle to this charger by a person. Null: none that still counts. */
  bindingAt(charger: ChargerId): Binding | null {
    const claim = this.#identityClaims.get(charger);
    return claim?.kind === "known" ? claim.binding : null;
  }

  /** The charger reports its vehicle, or a person names it. */
  claim(
    charger: ChargerId,
    report: Exclude<IdentityReport, undefined>,
    reportedAt: Instant,
    binding: Binding | null = null,
  ): Noted {
    if (binding !== null) this.#reportedAt.set(charger, reportedAt);
    const before = this.#identityClaims.get(charger);
    const affected = new Set([charger]);
    if (before?.kind === "known") for (const other of this.#leave(before)) affected.add(other);
    if (report === "nobody") this.#identityClaims.delete(charger);
    else if (report.kind === "unknown") this.#identityClaims.set(charger, report);
    else {
      const claim: Known = { ...report, charger, at: reportedAt, recalled: false, away: null, binding };
      this.#identityClaims.set(charger, claim);
      const assignment = this.#assign.get(claim.vehicle);
      if (assignment !== undefined && reportedAt < assignment.at)
        return { affectedChargers: [...affected], warning: conflict(assignment, claim) };
      const { affectedChargers, warning } = this.#take(claim, assignment);
      return { affectedChargers: [...new Set([...affected, ...affectedChargers])], warning };
    }
    return { affectedChargers: [...affected], warning: null };
  }

  /**
   * Restores the occupant of a charger from its stored command, until the charger reports one, or from the binding by a
   * person. A command does not show what named the vehicle: a message without an identity gives way to a fixed binding.
   */
  recall(charger: ChargerId, vehicle: VehicleId, since: Instant, binding: Binding | null = null): void {
    const known = this.#vehicles.get(vehicle);
    if (known === undefined || this.#identityClaims.has(charger) || this.#firstMessageAt.has(charger)) return;
    if (known.charger === charger && binding === null) return;
    if (binding !== null) this.#reportedAt.set(charger, since);
    const claim: Known = { kind: "known", charger, vehicle, at: since, recalled: true, away: null, binding };
    this.#identityClaims.set(charger, claim);
    const assignment = this.#assign.get(vehicle);
    if (assignment === undefined || assignment.at <= since) this.#assign.set(vehicle, claim);
  }

  /** A charger went offline or silent: its claim no longer counts against the vehicle's own charger. */
  depart(charger: ChargerId, away: Away = "offline"): readonly ChargerId[] {
    const claim = this.#identityClaims.get(charger);
    if (claim?.kind !== "known" || (this.#vehicles.get(claim.vehicle)?.charger ?? charger) === charger)
      return [];
    const before = claim.away;
    claim.away = away;
    const silent = this.#silentAt.get(claim.vehicle) ?? [];
    if (away === "silent") this.#silentAt.set(claim.vehicle, [...new Set([...silent, charger])]);
    if (this.#assign.get(claim.vehicle) === claim) return [charger, ...this.#leave(claim)];
    return before === "silent" && away === "offline" ? [charger] : [];
  }

  /** A charger is online again. Its last report counts again, unless another charger claims the vehicle meanwhile. */
  comeBack(charger: ChargerId): readonly ChargerId[] {
    const claim = this.#identityClaims.get(charger);
    if (claim?.kind !== "known" || claim.away === null) return [];
    claim.away = null;
    return this.#assign.has(claim.vehicle) ? [] : this.#take(claim, undefined).affectedChargers;
  }

  /** Chargers whose occupant is known from a stored command only. */
  recalled(): readonly ChargerId[] {
    return [...this.#identityClaims].flatMap(([id, claim]) =>
      claim.kind === "known" && claim.recalled ? [id] : [],
    );
  }

  at(charger: ChargerId): Occupant {
    const assigned = this.#assigned(charger);
    if (assigned.kind !== "nobody") return assigned;
    const last = this.#lastNamedBy(charger);
    const kept = this.kept.of(charger) ?? (last === null || this.#assign.has(last) ? null : last);
    return kept === null ? assigned : { kind: "vehicle", vehicle: kept, source: "kept" };
  }

  /** No vehicle counts at this charger, and it keeps no limit yet. */
  hasLost(charger: ChargerId): boolean {
    return this.#assigned(charger).kind === "nobody" && this.kept.of(charger) === null;
  }

  /** All chargers of a vehicle: the one it is on, and those that it may still be on. */
  chargersOf(vehicle: VehicleId): readonly ChargerId[] {
    const silent = this.#silentOf(vehicle);
    return [...new Set([this.where(vehicle) ?? [], ...this.kept.chargersOf(vehicle), ...silent].flat())];
  }

  /** The vehicle that a silent charger named last. Null: the charger is not silent, or named none. */
  #lastNamedBy(charger: ChargerId): VehicleId | null {
    const claim = this.#identityClaims.get(charger);
    return claim?.kind === "known" && claim.away === "silent" ? claim.vehicle : null;
  }

  /** Silent chargers that a vehicle may still be on. */
  #silentOf(vehicle: VehicleId): readonly ChargerId[] {
    const silent = this.#silentAt.get(vehicle) ?? [];
    return this.#assign.has(vehicle)
      ? []
      : silent.filter((charger) => this.#lastNamedBy(charger) === vehicle);
  }

  #assigned(charger: ChargerId): Occupant {
    const claim = this.#identityClaims.get(charger);
    if (claim?.kind === "unknown") return { kind: "unknown", identity: claim.identity };
    if (claim?.kind === "known") {
      if (this.#assign.get(claim.vehicle) !== claim) return NOBODY;
      const source = claim.binding === null ? "telemetry" : "person";
      return { kind: "vehicle", vehicle: claim.vehicle, source };
    }
    const bound = this.fixedVehicleOf(charger);
    return bound === null ? NOBODY : { kind: "vehicle", vehicle: bound, source: "fixed" };
  }

  /** The vehicle on a charger by this message alone. Null: none, or an unknown one. Undefined: not reported. */
  reportedVehicle(charger: ChargerId, telemetry: Telemetry): VehicleId | null | undefined {
    const report = this.#identities.reportOf(telemetry, this.bindingAt(charger));
    if (report === undefined) return undefined;
    if (report === "nobody") return this.fixedVehicleOf(charger);
    return report.kind === "known" ? report.vehicle : null;
  }

  /** The charger that a vehicle is on. Null: none. */
  where(vehicle: VehicleId): ChargerId | null {
    const assignment = this.#assign.get(vehicle);
    if (assignment !== undefined) return assignment.charger;
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    if (home === null) return null;
    const occupant = this.#assigned(home);
    return occupant.kind === "vehicle" && occupant.vehicle === vehicle ? home : null;
  }

  /** The fixed vehicle, unless another charger claims it. */
  fixedVehicleOf(charger: ChargerId): VehicleId | null {
    const bound = this.#fixed.get(charger) ?? null;
    return bound === null || this.#assign.has(bound) ? null : bound;
  }

  /** After the clock was set back: a report dated later than now counts as reported now. */
  onClockMovedBack(now: Instant): void {
    for (const claim of this.#identityClaims.values())
      if (claim.kind === "known") claim.at = earlier(claim.at, now);
    for (const [charger, at] of this.#reportedAt) this.#reportedAt.set(charger, earlier(at, now));
  }

  /**
   * A charger renews its claim. It gets the vehicle back from a charger that does not renew.
   * Two chargers alternate unless this report and the previous one are newer by a minute than the other's last.
   */
  #renew(claim: Known, reportedAt: Instant, now: Instant): Noted {
    const lastAt = claim.at;
    claim.at = earlier(later(lastAt, reportedAt), now);
    claim.recalled = false;
    const wasAway = claim.away !== null;
    claim.away = null;
    const assignment = this.#assign.get(claim.vehicle);
    if (assignment === undefined && wasAway) return this.#take(claim, assignment);
    if (assignment === undefined || assignment === claim || lastAt <= after(assignment.at, QUIET))
      return NOTHING_NEW;
    return this.#take(claim, assignment);
  }

  #take(claim: Known, assignment: Known | undefined): Noted {
    const silent = this.#silentOf(claim.vehicle);
    this.#assign.set(claim.vehicle, claim);
    const home = this.#vehicles.get(claim.vehicle)?.charger ?? claim.charger;
    const affected = new Set([claim.charger, assignment?.charger ?? claim.charger, home, ...silent]);
    return { affectedChargers: [...affected], warning: assignment ? conflict(claim, assignment) : null };
  }

  /** A restored claim: by the current configuration the vehicle or the charger is bound otherwise. */
  #isReplacedByBinding(claim: Known | UnknownOccupant | undefined): boolean {
    if (claim?.kind !== "known" || !claim.recalled || claim.binding !== null) return false;
    return this.#fixed.has(claim.charger) || this.#vehicles.get(claim.vehicle)?.charger != null;
  }

  /** A charger gives up a vehicle: the newest of the other claims counts again. */
  #leave(left: Known): ChargerId[] {
    const { vehicle } = left;
    const home = this.#vehicles.get(vehicle)?.charger ?? null;
    const affected = home === null ? [] : [home];
    if (this.#assign.get(vehicle) !== left) return affected;
    this.#assign.delete(vehicle);
    let newest: Known | undefined;
    for (const claim of this.#identityClaims.naming(vehicle)) {
      if (claim === left || claim.away !== null) continue;
      if (newest === undefined || claim.at > newest.at) newest = claim;
    }
    if (newest === undefined) return [...affected, ...this.#silentOf(vehicle)];
    this.#assign.set(vehicle, newest);
    return [...affected, newest.charger];
  }
}
