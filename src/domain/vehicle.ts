import type { Amperes, ChargerId, VehicleId, Watts } from "./units.ts";

/**
 * Identity of a vehicle as a charger reports it, e.g. `{ kind: "mac", value: "02:aa:bb:00:00:01" }`, in lower case.
 */
export interface Identity {
  readonly kind: string;
  readonly value: string;
}

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

/** An EVCC id is the MAC address of the vehicle's modem. Chargers use either name. */
const comparedAs = (kind: string): string => (kind === "evccid" ? "mac" : kind);

/** Comparison key without case and separators, because chargers format one MAC differently. */
export const identityKey = (kind: string, value: string): string =>
  `${comparedAs(kind.toLowerCase())} ${value.toLowerCase().replaceAll(/[\s:-]/g, "")}`;
