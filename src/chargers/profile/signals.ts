import type { ChargerState } from "../../domain/telemetry.ts";

/** The words for a charger's state (DESIGN 6.2). */
export const STATES: readonly ChargerState[] = [
  "unplugged",
  "connected",
  "charging",
  "paused",
  "finished",
  "error",
  "unknown",
];

/** What a charger tells, in the words of DESIGN 6.5: what it does not tell is absent, what it declares unknown is null. */
export interface Signals {
  readonly powerW?: number | null;
  readonly energyWh?: number | null;
  readonly sessionEnergyWh?: number | null;
  readonly currentA?: number | null;
  /** By phase; null where a phase is not known yet. */
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
  readonly online?: boolean | null;
}

/** The answer of a charger to a command. */
export interface Answer {
  readonly accepted: boolean;
  /** Its own words; null: it gave none. */
  readonly reason: string | null;
}

/** What a message is to us. */
export interface DecodedMessage {
  /** Its own words, without what a state implies. */
  readonly signals: Signals;
  /** Null: the message is no answer to a command. */
  readonly answer: Answer | null;
}

export const NOTHING_DECODED: DecodedMessage = { signals: {}, answer: null };

/** What a message says, and what its state says of the rest; a word of its own goes before. */
export const whole = (means: Signals): Signals => ({ ...impliedBy(means.state), ...means });

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

/** It charges, or says that it may. */
export function showsNoPause(means: Signals): boolean {
  const { paused, charging } = whole(means);
  return paused === false || charging === true;
}
