import { HOUR } from "../simulate/plan.ts";
import { VirtualDepot } from "./virtualDepot.ts";

/** Of an ordinary day at a large depot: everyone speaks every 5 s, and each hour half of the fleet has an event, reported on. */
const LARGE_DEPOT = {
  chargers: 200,
  telemetryEvery: 5_000,
  eventEvery: HOUR,
  keep: 50 * 24 * HOUR,
  seed: 1,
};

/** How often the disk was synced on average, and what was done meanwhile. */
export type DayFigure = VirtualDepot["count"] & { readonly hours: number; readonly commitsPerSecond: number };

/** Lets so many hours pass over the large depot; told after each. */
export async function dayFigure(
  hours: number,
  onHour: (hour: number) => void = () => undefined,
  chargers = LARGE_DEPOT.chargers,
): Promise<DayFigure> {
  using depot = new VirtualDepot({ ...LARGE_DEPOT, chargers });
  for (let hour = 1; hour <= hours; hour += 1) {
    await depot.passes(HOUR);
    onHour(hour);
  }
  const { count } = depot;
  return { hours, commitsPerSecond: count.commits / (hours * 3600), ...count };
}
