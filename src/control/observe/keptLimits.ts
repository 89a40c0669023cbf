import { after, type ChargerId, type Instant, minutes, type VehicleId } from "../../domain/units.ts";
import { chargingPhases } from "../decide/limits.ts";
import type { Telemetry } from "../../domain/telemetry.ts";

/** A charger that draws nothing for so long has lost its vehicle (DESIGN 5.5). */
const IDLE_FOR = minutes(1);
/** W; standby electronics draw less. */
const CHARGING_WATTS = 200;

interface Kept {
  readonly vehicle: VehicleId;
  /** Since when the charger is seen to draw nothing; null: it draws, or does not report. */
  idleSince: Instant | null;
}

const NONE: ReadonlySet<ChargerId> = new Set();

/**
 * Chargers that keep the limit of a vehicle which is said to be elsewhere. Another charger cannot free a bay by a claim:
 * the bay itself has to say that nobody is plugged in, or to draw nothing for a minute.
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

  keep(charger: ChargerId, vehicle: VehicleId): void {
    this.drop(charger);
    this.#kept.set(charger, { vehicle, idleSince: null });
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

  /** What the charger draws now; null: not known, so that nothing changes. */
  draws(charger: ChargerId, isDrawing: boolean | null, now: Instant): void {
    const kept = this.#kept.get(charger);
    if (kept === undefined || isDrawing === null) return;
    kept.idleSince = isDrawing ? null : earliest(kept.idleSince, now);
  }

  /** When the charger will have drawn nothing for long enough; null: it draws, or keeps no limit. */
  idleAt(charger: ChargerId): Instant | null {
    const since = this.#kept.get(charger)?.idleSince ?? null;
    return since === null ? null : after(since, IDLE_FOR);
  }
}

/** A moment in the future is of a clock that was set back since. */
const earliest = (since: Instant | null, now: Instant): Instant =>
  since === null || since > now ? now : since;

/** Whether a vehicle draws, by this message; null: it does not tell. */
export function isDrawing({ currentsA, powerW }: Omit<Telemetry, "at">): boolean | null {
  if (currentsA === undefined && powerW === undefined) return null;
  return chargingPhases(currentsA) !== null || Math.abs(powerW ?? 0) >= CHARGING_WATTS;
}
