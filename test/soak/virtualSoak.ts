import { HOUR } from "../simulate/plan.ts";
import { aliveInHeap } from "./aliveInHeap.ts";
import type { Rule } from "./verdict.ts";
import { type Rows, VirtualDepot, type VirtualPlan } from "./virtualDepot.ts";

/** How a depot stands at one hour of virtual time; memory is that of this whole process, the world around it included. */
export type Stand = Rows & {
  readonly hours: number;
  /** MB, after a collection. */
  readonly heap: number;
  readonly resident: number;
  /** MB. */
  readonly file: number;
};

/** Grows by less in an hour; the days differ a little. */
export const RULES = {
  heap: { growth: 0.02, most: 300 },
  resident: { growth: 0.2, most: 600 },
  file: { growth: 0.01, most: 300 },
  event: { growth: 0.1, most: 5_000 },
  audit: { growth: 3, most: 200_000 },
  report: { growth: 0.1, most: 10_000 },
  reading: { growth: 30, most: 2_000_000 },
  duty: { growth: 0.1, most: 10_000 },
  seat: { growth: 0.1, most: 10_000 },
} as const satisfies Readonly<Record<Exclude<keyof Stand, "hours">, Rule>>;

/** Lets so many hours pass over a depot, and tells how it stands after each `every` of them. */
export async function virtualSoak(
  plan: VirtualPlan,
  { hours, every }: { readonly hours: number; readonly every: number },
  onStand: (stand: Stand) => void = () => undefined,
): Promise<{ readonly stands: readonly Stand[]; readonly count: VirtualDepot["count"] }> {
  using depot = new VirtualDepot(plan);
  const stands: Stand[] = [];
  for (let passed = every; passed <= hours; passed += every) {
    await depot.passes(every * HOUR);
    const [heap, resident] = [aliveInHeap() / 1e6, process.memoryUsage.rss() / 1e6];
    const stand = { hours: passed, heap, resident, file: depot.count.bytes / 1e6, ...depot.rows };
    stands.push(stand);
    onStand(stand);
  }
  return { stands, count: depot.count };
}
