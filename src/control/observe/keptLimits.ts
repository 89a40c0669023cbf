import { after, type ChargerId, type Instant, later, minutes, type VehicleId } from "../../domain/units.ts";
import { chargingPhases } from "../decide/limits.ts";
import type { Telemetry } from "../../domain/telemetry.ts";

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
