import type { Desired } from "./setpoint.ts";
import type { ChargerState } from "./telemetry.ts";
import type { ChargerId, VehicleId, Instant, EventId } from "./units.ts";

/**
 * `power` W; `energy` Wh, the charger's lifetime register; `current` A of the phase that carries most, as an event
 * asks for amperes per phase; `voltage` V, mean of the phases; `soc` percent; `limit` A, as the charger reports it.
 */
export type MeasuredKind = "power" | "energy" | "current" | "voltage" | "soc" | "limit";

interface Stamp {
  readonly charger: ChargerId;
  /** Who was on the charger; null: nobody, or not one of ours. */
  readonly vehicle: VehicleId | null;
  readonly at: Instant;
  readonly receivedAt: Instant;
  readonly source: "charger" | "vehicle" | "command";
  readonly quality: ReadingQuality;
}

/** `received`: the charger's clock is wrong, so `at` goes by the receipt. `implausible`: kept, never counted. */
type ReadingQuality = "good" | "received" | "implausible";

export interface Measured extends Stamp {
  readonly kind: MeasuredKind;
  readonly value: number;
}

/** How the charger said it was. */
export interface Stated extends Stamp {
  readonly kind: "state";
  readonly value: ChargerState;
}

/** What the charger was told by us, and until when that holds at most. */
export interface CommandReading extends Stamp {
  readonly kind: "setpoint";
  readonly value: Desired;
  readonly until: Instant | null;
  readonly event: EventId | null;
}

/** One thing that was so at one moment. */
export type Reading = Measured | Stated | CommandReading;
