import type { Amperes, ChargerId, VehicleId, Watts } from "./units.ts";

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

/** An EVCC id is the MAC address of the vehicle's modem: makes call it by either name. */
const comparedAs = (kind: string): string => (kind === "evccid" ? "mac" : kind);

/** Identities are compared without regard to case or separators: chargers spell the same MAC in many ways. */
export const identityKey = (kind: string, value: string): string =>
  `${comparedAs(kind.toLowerCase())} ${value.toLowerCase().replaceAll(/[\s:-]/g, "")}`;
