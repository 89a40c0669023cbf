import type { RankSettings } from "../../src/core/control/arbitrate.ts";
import type { Dispatch } from "../../src/core/control/expand.ts";
import { InForce } from "../../src/core/control/inForce.ts";
import {
  type Circumstances as Real,
  type Verdict,
  verdict as verdictIn,
} from "../../src/core/control/verdict.ts";

/** As in the program, with a plain list of what holds. */
export type Circumstances = Omit<Real, "holding"> & { readonly holding: readonly Dispatch[] };

export function inForce(dispatches: readonly Dispatch[], settings: RankSettings): InForce {
  const holding = new InForce(settings);
  for (const dispatch of dispatches) holding.add(dispatch);
  return holding;
}

export const verdict = (circumstances: Circumstances, settings: RankSettings): Verdict =>
  verdictIn({ ...circumstances, holding: inForce(circumstances.holding, settings) });
