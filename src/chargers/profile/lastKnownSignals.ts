import type { ChargerState, Telemetry } from "../../domain/telemetry.ts";
import type { Instant } from "../../domain/units.ts";
import { type Signals, whole } from "./signals.ts";

/** All that a charger told so far, since each message says a part. */
export interface LastKnownSignals {
  /** Its own words, each until it says otherwise. */
  readonly told: Signals;
  /** What its last state says of the rest, which goes when another state comes. */
  readonly implied: Signals;
}

export const NOTHING_STANDS: LastKnownSignals = { told: {}, implied: {} };

/** How it stands, in one. */
export const currentSignals = ({ told, implied }: LastKnownSignals): Signals => ({ ...told, ...implied });

const OF_A_STATE = ["plugged", "charging", "paused", "error"] as const;
const OF_A_VEHICLE = ["vehicleId", "vehicleIdKind"] as const;

/**
 * What stands after another message: what it tells replaces what was told before, the rest stays. But what a state
 * implies, and what is said along with one, is over with the next state: a pause of the last session is none of this.
 */
export function folded(standing: LastKnownSignals, means: Signals): LastKnownSignals {
  const said = whole(means);
  // Who leaves takes its name along.
  const before = said.plugged === false ? without(standing.told, OF_A_VEHICLE) : standing.told;
  if (means.state === undefined)
    return {
      told: withStateSignals(before, means, standing),
      implied: without(standing.implied, keysOf(means)),
    };
  const implied = keysOf(said).filter((key) => OF_A_STATE.some((one) => one === key));
  const contradicted = implied.filter((key) => said[key] !== before[key]);
  return {
    told: withStateSignals(without(before, contradicted), without(means, OF_A_STATE), standing),
    implied: Object.fromEntries(implied.map((key) => [key, said[key]])),
  };
}

/** A name that a gateway guessed, where the vehicle or its card has already spoken. */
const isWeaker = (means: Signals, { told }: LastKnownSignals): boolean =>
  means.vehicleIdKind === "name" &&
  whole(means).plugged !== false &&
  typeof told.vehicleId === "string" &&
  told.vehicleIdKind !== "name";

function withStateSignals(before: Signals, means: Signals, standing: LastKnownSignals): Signals {
  if (means.vehicleId === undefined || isWeaker(means, standing))
    return { ...before, ...without(means, OF_A_VEHICLE) };
  // A vehicle that is unknown now has no kind from before.
  return { ...without(before, OF_A_VEHICLE), ...means };
}

export const without = (means: Signals, signals: readonly string[]): Signals =>
  Object.fromEntries(Object.entries(means).filter(([signal]) => !signals.includes(signal)));

const keysOf = (means: Signals) => Object.keys(means) as readonly (keyof Signals)[];

/**
 * One message in the words of core: only what it tells, as core keeps the rest itself. `standing` is what was told
 * before it; `phases` those of the charger, since a single current is that of each of them.
 */
export function telemetryOf(
  means: Signals,
  standing: LastKnownSignals,
  phases: number,
  at: Instant,
): Telemetry {
  const { powerW, energyWh, sessionEnergyWh, socPct, limitA } = means;
  const currents =
    means.currentsA ?? (typeof means.currentA === "number" ? Array(phases).fill(means.currentA) : []);
  const state = stateFrom(means, currentSignals(folded(standing, means)));
  return {
    at,
    ...identityIn(means, standing),
    ...known({
      state,
      powerW,
      energyWh,
      sessionWh: sessionEnergyWh,
      soc: socPct,
      limitA,
      currentsA: measured(currents),
      voltagesV: measured(means.voltagesV ?? []),
    }),
  };
}

/**
 * One word for what several signals say, since makes tell a part of it on each topic; undefined: this message was
 * about none of them.
 */
function stateFrom(means: Signals, all: Signals): ChargerState | undefined {
  const { state, plugged, charging, paused, error } = means;
  if ([state, plugged, charging, paused, error].every((signal) => signal === undefined)) return undefined;
  if (state === null || state === "unknown") return "unknown";
  if (all.error === true) return "error";
  if (all.plugged === false) return "unplugged";
  if (all.charging === true) return "charging";
  if (all.paused === true) return "paused";
  if (all.state === "finished") return "finished";
  return all.plugged === true ? "connected" : undefined;
}

function identityIn(means: Signals, standing: LastKnownSignals): Pick<Telemetry, "vehicle" | "identity"> {
  const { vehicleId, vehicleIdKind = "id" } = means;
  if (vehicleId === undefined || isWeaker(means, standing)) return {};
  if (vehicleId === null) return { identity: null };
  if (vehicleIdKind === "vehicle") return { vehicle: vehicleId };
  return { identity: { kind: vehicleIdKind, value: vehicleId.toLowerCase() } };
}

/** The phases that are known; undefined: none. */
function measured(list: readonly (number | null)[]): readonly number[] | undefined {
  const numbers = list.filter((entry) => entry !== null);
  return numbers.length === 0 ? undefined : numbers;
}

type Known<T> = { [K in keyof T]?: NonNullable<T[K]> };

const known = <T extends object>(values: T): Known<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value != null)) as Known<T>;
