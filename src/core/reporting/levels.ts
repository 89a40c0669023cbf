import { asSwitched, wattsPerAmpere } from "../control/limits.ts";
import type { Window } from "../units.ts";
import { type Finding, nothing } from "./cause.ts";
import type { Commanded, Evidence, FillContext } from "./evidence.ts";
import type { Method, Wanted } from "./payload.ts";
import { integral, last, mean, peak, type Step, within } from "./series.ts";

const HOUR = 3_600_000;

/** What the vehicle was, or will be, held to, as levels of one unit: a pause is 0, a release is none. */
export function levelsIn(
  { commanded, vehicle }: Evidence,
  window: Window,
  unit: Wanted["level"],
  { chargers, vehicles }: Pick<FillContext, "chargers" | "vehicles">,
): readonly Step<number>[] {
  return within(commanded, window).flatMap(({ from, until, value, charger }): readonly Step<number>[] => {
    const known = chargers.get(charger);
    const ratio =
      known === undefined
        ? null
        : wattsPerAmpere(asSwitched(known, value), vehicles.get(vehicle) ?? null, null);
    const level = levelOf(value, unit, ratio);
    return level === null ? [] : [{ from, until, value: level }];
  });
}

/** Null: free, or a charger of which nothing is known any more. */
function levelOf(desired: Commanded["value"], unit: Wanted["level"], ratio: number | null): number | null {
  switch (desired.kind) {
    case "release":
      return null;
    case "pause":
      return 0;
    case "current":
      if (unit === "A") return desired.amperes;
      return ratio === null ? null : desired.amperes * ratio;
    case "power":
      if (unit === "W") return desired.watts;
      return ratio === null ? null : desired.watts / ratio;
  }
}

/** The setpoint in force: the last, or by the method the mean or the highest; in A or kW. */
export function setpointIn(
  levels: readonly Step<number>[],
  method: Method,
  unit: Wanted["level"],
): Finding<number> {
  const level = method === "mean" ? mean(levels) : method === "peak" ? peak(levels) : last(levels);
  if (level === null) return nothing("no setpoint");
  return { value: unit === "A" ? level : level / 1000, quality: "OK", causes: [] };
}

/** Energy (kWh) or mean power (kW) at the levels it will be held to: what it draws at most. */
export function forecastIn(watts: readonly Step<number>[], quantity: "usage" | "demand"): Finding<number> {
  const level = mean(watts);
  if (level === null) return nothing("no setpoint");
  const value = quantity === "usage" ? integral(watts) / HOUR / 1000 : level / 1000;
  return { value, quality: "ESTIMATED", causes: [] };
}
