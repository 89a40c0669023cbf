import type * as z from "zod";

import type { ChargerState } from "../../domain/telemetry.ts";
import type { Composed, Reading, SignalName, telemetry } from "./sections.ts";

/** States of a charger. */
export const STATES: readonly ChargerState[] = [
  "unplugged",
  "connected",
  "charging",
  "paused",
  "finished",
  "error",
  "unknown",
];

/**
 * Signals of a charger, as `setpointd profile try` shows them. Absent: not reported. Null: declared
 * unknown.
 */
export interface Signals {
  readonly powerW?: number | null;
  readonly energyWh?: number | null;
  readonly sessionEnergyWh?: number | null;
  readonly currentA?: number | null;
  /** By phase. Null: this phase is not known yet. */
  readonly currentsA?: readonly (number | null)[] | null;
  readonly voltagesV?: readonly (number | null)[] | null;
  readonly limitA?: number | null;
  readonly requestedA?: number | null;
  readonly plugged?: boolean | null;
  readonly charging?: boolean | null;
  readonly paused?: boolean | null;
  readonly error?: boolean | null;
  readonly state?: ChargerState | null;
  readonly vehicleId?: string | null;
  readonly vehicleIdKind?: string;
  readonly socPct?: number | null;
  readonly phases?: number | null;
  readonly firmware?: string | null;
  readonly bootCount?: number | null;
  readonly online?: boolean | null;
}

/** The answer of a charger to a command. */
export interface Answer {
  readonly accepted: boolean;
  /** Text of the charger. Null: none. */
  readonly reason: string | null;
}

/** A message after decoding. */
export interface DecodedMessage {
  /** Signals in the message, without those that its state implies. */
  readonly signals: Signals;
  /** Null: the message is no answer to a command. */
  readonly answer: Answer | null;
}

export const NOTHING_DECODED: DecodedMessage = { signals: {}, answer: null };

/** Signals of a message with those that its state implies. A signal of the message wins. */
export const whole = (signals: Signals): Signals => ({ ...impliedBy(signals.state), ...signals });

function impliedBy(state: ChargerState | null | undefined): Signals {
  switch (state) {
    case "unplugged":
      return { plugged: false, charging: false };
    case "connected":
    case "finished":
      return { plugged: true, charging: false };
    case "charging":
      return { plugged: true, charging: true, paused: false };
    case "paused":
      return { charging: false, paused: true };
    case "error":
      return { error: true };
    case "unknown":
    case null:
    case undefined:
      return {};
  }
}

/** True: the charger charges, or reports that it may. */
export function showsNoPause(signals: Signals): boolean {
  const { paused, charging } = whole(signals);
  return paused === false || charging === true;
}

type Telemetry = z.output<typeof telemetry>;

/** A source of a signal. */
export interface Source {
  readonly signal: SignalName;
  readonly composed: Composed;
  /** Every reading that it uses. */
  readonly readings: readonly Reading[];
}

/** Signals with one value for each phase. */
export const isList = (signal: SignalName): signal is "currentsA" | "voltagesV" =>
  signal === "currentsA" || signal === "voltagesV";

const NUMERIC: ReadonlySet<SignalName> = new Set([
  "powerW",
  "energyWh",
  "sessionEnergyWh",
  "currentA",
  "currentsA",
  "voltagesV",
  "limitA",
  "requestedA",
  "socPct",
  "phases",
  "bootCount",
]);

/** Signals of one or several numbers. */
export const isNumeric = (signal: SignalName): boolean => NUMERIC.has(signal);

/** All sources of all signals. The sources of one signal are in order of preference. */
export const readingsOf = (telemetry: Telemetry): readonly Source[] =>
  Object.entries(telemetry).flatMap(([signal, ways]) =>
    [ways ?? []].flat().map((composed) => ({
      // The schema allows these keys only.
      signal: signal as SignalName,
      composed,
      readings: partsOf(composed),
    })),
  );

function partsOf(composed: Composed): readonly Reading[] {
  if ("each" in composed) return composed.each;
  return "minus" in composed ? composed.minus : [composed];
}

/** Every topic of a reading. */
export const topicsOf = ({ topic, index }: Reading): readonly string[] =>
  index === undefined ? [topic] : [topic, index.topic];
