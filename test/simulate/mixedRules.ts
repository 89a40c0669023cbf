import type { Standing } from "./oracle.ts";
import type { PlannedCharger } from "./plan.ts";

const VOLTAGE = 230;
const NOISE = 0.11;

/** A per phase; who is free may take all it has. */
function amperesOf(standing: Standing, { maxCurrent, phases }: PlannedCharger): number {
  switch (standing.kind) {
    case "free":
      return maxCurrent;
    case "pause":
      return 0;
    case "current":
      return Math.min(standing.value, maxCurrent);
    case "power":
      return Math.min(standing.value / phases / VOLTAGE, maxCurrent);
  }
}

/**
 * Whether a charger of a make does as it should. Makes know no release by name and no watts as a rule, so amperes are
 * compared; and less than it should is right as long as the gateway says that it holds an increase back for the
 * hardware's sake, or the charger pretends. More is never right.
 */
export function doesAsItShould(
  does: Standing,
  should: Standing,
  charger: PlannedCharger,
  isHeldBack: boolean,
): boolean {
  const [has, may] = [amperesOf(does, charger), amperesOf(should, charger)];
  return Math.abs(has - may) <= NOISE || (has < may && isHeldBack);
}
