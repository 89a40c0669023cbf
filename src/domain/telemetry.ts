import type { ChargerId, Instant } from "./units.ts";

export type ChargerState =
  | "unplugged"
  | "connected"
  | "charging"
  | "paused"
  | "finished"
  | "error"
  | "unknown";

/**
 * Mark of a charger's last start, by the charger itself: its own count of starts, or the time of the last one. Another
 * mark shows that it has started again.
 */
export type StartMark =
  | { readonly kind: "count"; readonly count: number }
  | { readonly kind: "time"; readonly at: Instant };

/**
 * Content of one charger message, the same for all makes. Absent: not in the message. Null: declared unknown (DESIGN
 * 6.5).
 */
export interface Telemetry {
  /** Time of measurement by the charger's clock. The receipt where the message has none. */
  readonly at: Instant;
  readonly state?: ChargerState;
  /** A VTN resource id. */
  readonly vehicle?: string | null;
  readonly identity?: { readonly kind: string; readonly value: string } | null;
  readonly powerW?: number;
  readonly currentsA?: readonly number[];
  readonly voltagesV?: readonly number[];
  readonly energyWh?: number;
  readonly sessionWh?: number;
  readonly soc?: number;
  readonly limitA?: number;
  /** Version of its firmware, as the charger names it. */
  readonly firmware?: string;
  readonly started?: StartMark;
}

/** Messages that a driver delivers. */
export type ChargerMessage =
  /**
   * `lastKnown`: all current values, for makes that publish each value separately. Absent: `telemetry` is complete.
   * `snapshot`: a retained message of unknown age.
   */
  | {
      readonly kind: "telemetry";
      readonly charger: ChargerId;
      readonly telemetry: Telemetry;
      readonly lastKnown?: Telemetry;
      readonly snapshot?: true;
    }
  | {
      readonly kind: "ack";
      readonly charger: ChargerId;
      readonly id: string;
      readonly accepted: boolean;
      readonly value: number | null;
      readonly reason: string | null;
    }
  /** The driver timed out waiting for a confirmation. This is no sign of life of the charger. */
  | {
      readonly kind: "unconfirmed";
      readonly charger: ChargerId;
      readonly id: string;
      readonly reason: string;
      /** False: the charger has sent nothing since the start, so the command may not have arrived. */
      readonly hasReported: boolean;
    }
  /** `snapshot`: a retained message, so the charger did not come online just now. */
  | {
      readonly kind: "online";
      readonly charger: ChargerId;
      readonly online: boolean;
      readonly snapshot: boolean;
    }
  /** The charger is online without its setpoint: it lost it, e.g. after a session, or missed the publish. */
  | { readonly kind: "forgot"; readonly charger: ChargerId }
  /** Unreadable message. Counted, and warned about once. */
  | { readonly kind: "malformed"; readonly charger: ChargerId; readonly reason: string };
