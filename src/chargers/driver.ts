import type { Command, Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import type { ChargerId, Instant, Millis } from "../domain/units.ts";
import type { PublishOptions } from "./broker/connection.ts";

/** Commands and messages of one charger of any kind. */
export interface ChargerDriver extends Disposable {
  /** Topics to subscribe to. + may stand for single levels. */
  readonly topics: readonly string[];
  /**
   * Publishes a command that is valid for `lease` at most. Ok: the broker has all of it. `before`: the previous
   * command, null: none. `isDoubted`: the charger was measured not to follow this command.
   */
  readonly send: (
    command: Command,
    lease: Millis,
    before: Desired | null,
    isDoubted?: boolean,
  ) => Promise<Sent>;
  readonly handleMessage: (topic: string, payload: Buffer, retained: boolean) => void;
  /** The level that the charger shows, set by anyone. Null: it shows none. */
  readonly shows: () => Desired | null;
  readonly brokerUp: () => void;
  readonly brokerDown: () => void;
}

/** Services that a driver needs. */
export interface DriverPorts {
  readonly now: () => Instant;
  readonly publish: (topic: string, payload: string, options: PublishOptions) => Promise<Sent>;
  readonly emit: (message: ChargerMessage) => void;
}

/** Outcomes of a publish that no broker got. Trying again is no use. */
export const NO_BROKER: Sent = { ok: false, retry: false, reason: "no broker" };

export const noDriver = (charger: ChargerId): Sent => ({
  ok: false,
  retry: false,
  reason: `charger ${JSON.stringify(charger)} has no topic: unknown id, profile or broker`,
});
