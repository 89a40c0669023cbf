import type { ChargerState, Telemetry } from "../../domain/telemetry.ts";
import type { Instant } from "../../domain/units.ts";
import { type Signals, whole } from "./signals.ts";

/** All signals of a charger so far: each message holds only some of them. */
export interface LastKnownSignals {
  /** Signals that were reported themselves. Each holds until the next report of it. */
  readonly reported: Signals;
  /** Signals that follow from the last state. They end with that state. */
  readonly implied: Signals;
}

export const NOTHING_STANDS: LastKnownSignals = { reported: {}, implied: {} };

/** Reported and implied signals in one. */
export const currentSignals = ({ reported, implied }: LastKnownSignals): Signals => ({
  ...reported,
  ...implied,
});

const OF_A_STATE = ["plugged", "charging", "paused", "error"] as const;
const OF_A_VEHICLE = ["vehicleId", "vehicleIdKind"] as const;

/**
 * Adds a message: its signals replace earlier ones, the rest stays. Signals that belong to a state end with it:
 * a pause of the last session is not a pause of this one.
 */
export function folded(known: LastKnownSignals, message: Signals): LastKnownSignals {
  const all = whole(message);
  // The identity ends when the vehicle is unplugged.
  const before = all.plugged === false ? without(known.reported, OF_A_VEHICLE) : known.reported;
  if (message.state === undefined)
    return {
      reported: withStateSignals(before, message, known),
      implied: without(known.implied, keysOf(message)),
    };
  const implied = keysOf(all).filter((key) => OF_A_STATE.some((one) => one === key));
  const contradicted = implied.filter((key) => all[key] !== before[key]);
  return {
    reported: withStateSignals(without(before, contradicted), without(message, OF_A_STATE), known),
    implied: Object.fromEntries(implied.map((key) => [key, all[key]])),
  };
}

/** True: a name guessed by a gateway, although the vehicle or its card has identified itself. */
const isWeaker = (message: Signals, { reported }: LastKnownSignals): boolean =>
  message.vehicleIdKind === "name" &&
  whole(message).plugged !== false &&
  typeof reported.vehicleId === "string" &&
  reported.vehicleIdKind !== "name";

function withStateSignals(before: Signals, message: Signals, known: LastKnownSignals): Signals {
  if (message.vehicleId === undefined || isWeaker(message, known))
    return { ...before, ...without(message, OF_A_VEHICLE) };
  // A vehicle that is unknown now must not keep the kind of the last one.
  return { ...without(before, OF_A_VEHICLE), ...message };
}

export const without = (signals: Signals, left: readonly string[]): Signals =>
  Object.fromEntries(Object.entries(signals).filter(([signal]) => !left.includes(signal)));

const keysOf = (signals: Signals) => Object.keys(signals) as readonly (keyof Signals)[];

/**
 * Converts one message to telemetry. Only signals in the message: control keeps the rest itself. `known`: signals
 * before the message. `phases`: a single current counts for each phase of the charger.
 */
export function telemetryOf(
  message: Signals,
  known: LastKnownSignals,
  phases: number,
  at: Instant,
): Telemetry {
  const { powerW, energyWh, sessionEnergyWh, socPct, limitA, firmware, bootCount } = message;
  const currents =
    message.currentsA ?? (typeof message.currentA === "number" ? Array(phases).fill(message.currentA) : []);
  const state = stateFrom(message, currentSignals(folded(known, message)));
  return {
    at,
    ...identityIn(message, known),
    ...present({
      state,
      powerW,
      energyWh,
      sessionWh: sessionEnergyWh,
      soc: socPct,
      limitA,
      currentsA: measured(currents),
      voltagesV: measured(message.voltagesV ?? []),
      firmware,
      started: typeof bootCount === "number" ? { kind: "count", count: bootCount } : undefined,
    }),
  };
}

/**
 * The state, from several signals: some makes report each on its own topic. Undefined: the message has none
 * of them.
 */
function stateFrom(message: Signals, all: Signals): ChargerState | undefined {
  const { state, plugged, charging, paused, error } = message;
  if ([state, plugged, charging, paused, error].every((signal) => signal === undefined)) return undefined;
  if (state === null || state === "unknown") return "unknown";
  if (all.error === true) return "error";
  if (all.plugged === false) return "unplugged";
  if (all.charging === true) return "charging";
  if (all.paused === true) return "paused";
  if (all.state === "finished") return "finished";
  return all.plugged === true ? "connected" : undefined;
}

function identityIn(message: Signals, known: LastKnownSignals): Pick<Telemetry, "vehicle" | "identity"> {
  const { vehicleId, vehicleIdKind = "id" } = message;
  if (vehicleId === undefined || isWeaker(message, known)) return {};
  if (vehicleId === null) return { identity: null };
  if (vehicleIdKind === "vehicle") return { vehicle: vehicleId };
  return { identity: { kind: vehicleIdKind, value: vehicleId.toLowerCase() } };
}

/** Values of the known phases. Undefined: none is known. */
function measured(list: readonly (number | null)[]): readonly number[] | undefined {
  const numbers = list.filter((entry) => entry !== null);
  return numbers.length === 0 ? undefined : numbers;
}

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> };

const present = <T extends object>(values: T): Present<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value != null)) as Present<T>;
