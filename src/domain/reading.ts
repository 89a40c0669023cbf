import type { Desired } from "./setpoint.ts";
import type { ChargerState } from "./telemetry.ts";
import type { ChargerId, VehicleId, Instant, EventId } from "./units.ts";

/**
 * Units: `power` W; `energy` Wh, the charger's lifetime register; `voltage` V, mean of the phases; `soc` percent.
 * `current` A of the most loaded phase, because events ask for amperes per phase. `limit` A, as the charger reports
 * it.
 */
export type MeasuredKind = "power" | "energy" | "current" | "voltage" | "soc" | "limit";

interface Stamp {
  readonly charger: ChargerId;
  /** Vehicle on the charger. Null: none, or an unknown vehicle. */
  readonly vehicle: VehicleId | null;
  readonly at: Instant;
  readonly receivedAt: Instant;
  readonly source: "charger" | "vehicle" | "command";
  readonly quality: ReadingQuality;
}

/** `received`: the charger's clock is wrong, so `at` is the receipt. `implausible`: stored, never used in a value. */
type ReadingQuality = "good" | "received" | "implausible";

/** A measured value, in the unit of its kind. */
export interface Measured extends Stamp {
  readonly kind: MeasuredKind;
  readonly value: number;
}

/** State as the charger reported it. */
export interface Stated extends Stamp {
  readonly kind: "state";
  readonly value: ChargerState;
}

/** Active setpoint of a charger. `until`: its latest end. */
export interface CommandReading extends Stamp {
  readonly kind: "setpoint";
  readonly value: Desired;
  readonly until: Instant | null;
  readonly event: EventId | null;
}

/** A stored observation. */
export type Reading = Measured | Stated | CommandReading;
