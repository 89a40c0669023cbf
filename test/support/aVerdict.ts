import {
  type Circumstances as Real,
  type Verdict,
  verdict as verdictIn,
} from "../../src/control/decide/verdict.ts";
import type { Dispatch } from "../../src/control/schedule/expand.ts";
import { type RankSettings, RankedInForce } from "../../src/control/schedule/vehiclePlan.ts";

/** As in the program, with a plain list of what holds. */
export type Circumstances = Omit<Real, "inForce"> & { readonly inForce: readonly Dispatch[] };

export function inForce(dispatches: readonly Dispatch[], settings: RankSettings): RankedInForce {
  const ranked = new RankedInForce(settings);
  for (const dispatch of dispatches) ranked.add(dispatch);
  return ranked;
}

export const verdict = (circumstances: Circumstances, settings: RankSettings): Verdict =>
  verdictIn({ ...circumstances, inForce: inForce(circumstances.inForce, settings) });
