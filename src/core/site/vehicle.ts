import type { Amperes, ChargerId, VehicleId, Watts } from "../units.ts";

/** What a charger may say to name a vehicle, e.g. `{ kind: "mac", value: "02:aa:bb:00:00:01" }`, folded to lower case. */
export interface Identity {
  readonly kind: string;
  readonly value: string;
}

export interface Vehicle {
  readonly id: VehicleId;
  readonly name: string;
  /** The fixed binding; null: only telemetry can tell where it is. */
  readonly charger: ChargerId | null;
  readonly maxCurrent: Amperes | null;
  readonly maxPower: Watts | null;
  /** Phases it charges on; null: all the charger has. */
  readonly phases: number | null;
  readonly identities: readonly Identity[];
}
