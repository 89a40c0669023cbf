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
 * What one charger message tells, whatever its make. What a message does not tell is absent,
 * what it declares unknown is null (DESIGN 6.5).
 */
export interface Telemetry {
  /** When the charger measured it, by its own clock; the receipt where it does not say. */
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
}

/** Everything that can come up from a charger. */
export type ChargerMessage =
  /**
   * `picture`: all that stands of what it told, from a make that tells one thing at a time; absent: `telemetry`.
   * `snapshot`: it waited at the broker, nobody knows for how long.
   */
  | {
      readonly kind: "telemetry";
      readonly charger: ChargerId;
      readonly telemetry: Telemetry;
      readonly picture?: Telemetry;
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
  /** It did not show in time that it took a command. Our timer says so: it is no sign of life of the charger. */
  | {
      readonly kind: "unconfirmed";
      readonly charger: ChargerId;
      readonly id: string;
      readonly reason: string;
      /** False: it has sent nothing since the start, so that nobody knows whether it got the command. */
      readonly isHeard: boolean;
    }
  /** `snapshot`: retained, so it tells how things stand, not that the charger has just come. */
  | {
      readonly kind: "online";
      readonly charger: ChargerId;
      readonly online: boolean;
      readonly snapshot: boolean;
    }
  /** It was there all the time, and has lost what it was told. */
  | { readonly kind: "forgot"; readonly charger: ChargerId }
  /** Not readable; counted, warned once, never anything else. */
  | { readonly kind: "rubbish"; readonly charger: ChargerId; readonly reason: string };
