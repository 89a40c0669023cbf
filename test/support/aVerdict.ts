import {
  type Circumstances as Real,
  type Verdict,
  verdict as verdictIn,
} from "../../src/control/decide/verdict.ts";
import type { Dispatch } from "../../src/control/schedule/expand.ts";
import { type RankSettings, RankedInForce } from "../../src/control/schedule/vehiclePlan.ts";
import { aCharger, aVehicle } from "./aCharger.ts";

/** As in the program, with a plain list of what holds. */
export type Circumstances = Omit<Real, "inForce"> & { readonly inForce: readonly Dispatch[] };

/** veh-214 is fixed to bay-01, and these dispatches hold for it. `more`: other than that. */
export const circumstancesOf = (
  inForce: readonly Dispatch[],
  more: Partial<Circumstances> = {},
): Circumstances => ({
  charger: aCharger(),
  occupant: { kind: "vehicle", vehicle: aVehicle().id, source: "fixed" },
  vehicle: aVehicle(),
  inForce,
  hold: null,
  measuredVoltage: null,
  measuredPhases: null,
  ...more,
});

export function inForce(dispatches: readonly Dispatch[], settings: RankSettings): RankedInForce {
  const ranked = new RankedInForce(settings);
  for (const dispatch of dispatches) ranked.add(dispatch);
  return ranked;
}

export const verdict = (circumstances: Circumstances, settings: RankSettings): Verdict =>
  verdictIn({ ...circumstances, inForce: inForce(circumstances.inForce, settings) });
