import type { ChargerState, Telemetry } from "../../core/site/telemetry.ts";
import type { Instant } from "../../core/units.ts";
import type { Means } from "./means.ts";

/** What stands after another message: what it tells replaces what was told before, the rest stays. */
export function folded(standing: Means, means: Means): Means {
  const { vehicleId, vehicleIdKind, ...rest } = means;
  // A state that is no error any more ends the error that another state implied.
  const healed = standing.state === "error" && typeof means.state === "string" && means.state !== "error";
  const before = { ...standing, ...(healed ? { error: false } : {}) };
  if (vehicleId === undefined || isWeaker(means, standing)) return { ...before, ...rest };
  // A vehicle that is unknown now has no kind from before.
  const { vehicleIdKind: _, ...others } = before;
  return { ...others, ...rest, vehicleId, ...(vehicleIdKind === undefined ? {} : { vehicleIdKind }) };
}

/**
 * One message in the words of core: only what it tells, as core keeps the rest itself. `standing` is what was told
 * before it; `phases` those of the charger, since a single current is that of each of them.
 */
export function telemetryOf(means: Means, standing: Means, phases: number, at: Instant): Telemetry {
  const { powerW, energyWh, sessionEnergyWh, socPct, limitA } = means;
  const currents =
    means.currentsA ?? (typeof means.currentA === "number" ? Array(phases).fill(means.currentA) : []);
  const state = stateFrom(means, folded(standing, means));
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
function stateFrom(means: Means, all: Means): ChargerState | undefined {
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

function identityIn(means: Means, standing: Means): Pick<Telemetry, "vehicle" | "identity"> {
  const { vehicleId, vehicleIdKind = "id" } = means;
  if (vehicleId === undefined || isWeaker(means, standing)) return {};
  if (vehicleId === null) return { identity: null };
  if (vehicleIdKind === "vehicle") return { vehicle: vehicleId };
  return { identity: { kind: vehicleIdKind, value: vehicleId.toLowerCase() } };
}

/** A name that a gateway guessed, where the vehicle or its card has already spoken. */
const isWeaker = (means: Means, standing: Means): boolean =>
  means.vehicleIdKind === "name" &&
  typeof standing.vehicleId === "string" &&
  standing.vehicleIdKind !== "name";

/** The phases that are known; undefined: none. */
function measured(list: readonly (number | null)[]): readonly number[] | undefined {
  const numbers = list.filter((entry) => entry !== null);
  return numbers.length === 0 ? undefined : numbers;
}

type Known<T> = { [K in keyof T]?: NonNullable<T[K]> };

const known = <T extends object>(values: T): Known<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value != null)) as Known<T>;
