import type { ChargerState, Telemetry } from "../../core/site/telemetry.ts";
import type { Instant } from "../../core/units.ts";
import type { Means } from "./means.ts";
import { folded, isWeaker, type Standing, standsAs } from "./standing.ts";

/**
 * One message in the words of core: only what it tells, as core keeps the rest itself. `standing` is what was told
 * before it; `phases` those of the charger, since a single current is that of each of them.
 */
export function telemetryOf(means: Means, standing: Standing, phases: number, at: Instant): Telemetry {
  const { powerW, energyWh, sessionEnergyWh, socPct, limitA } = means;
  const currents =
    means.currentsA ?? (typeof means.currentA === "number" ? Array(phases).fill(means.currentA) : []);
  const state = stateFrom(means, standsAs(folded(standing, means)));
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

function identityIn(means: Means, standing: Standing): Pick<Telemetry, "vehicle" | "identity"> {
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
