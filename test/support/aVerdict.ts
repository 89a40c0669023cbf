import {
  type Circumstances as Real,
  type Verdict,
  verdict as verdictIn,
} from "../../src/control/decide/verdict.ts";
import type { Dispatch } from "../../src/control/schedule/expand.ts";
import { type RankSettings, InForce } from "../../src/control/schedule/vehiclePlan.ts";

/** As in the program, with a plain list of what holds. */
export type Circumstances = Omit<Real, "holding"> & { readonly holding: readonly Dispatch[] };

export function inForce(dispatches: readonly Dispatch[], settings: RankSettings): InForce {
  const holding = new InForce(settings);
  for (const dispatch of dispatches) holding.add(dispatch);
  return holding;
}

export const verdict = (circumstances: Circumstances, settings: RankSettings): Verdict =>
  verdictIn({ ...circumstances, holding: inForce(circumstances.holding, settings) });
