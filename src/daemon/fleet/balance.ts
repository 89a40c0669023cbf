import type { FleetSnapshot } from "../../store/postgres/fleetWork.ts";

/** Sites that a process should take, and sites that it should give up. One of them is zero. */
export interface Move {
  readonly take: number;
  readonly give: number;
}

/** Part of the sites too many that a process gives up at once, so that the others can load them. */
const PART_GIVEN_UP = 0.2;

/**
 * The even share of each process, none above its `most`. A process takes free sites up to its share. It gives up sites
 * only while another process is below its share.
 */
export function moveOf({ sites, processes }: Pick<FleetSnapshot, "sites" | "processes">, self: string): Move {
  const level = levelOf(
    sites,
    processes.map(({ most }) => most),
  );
  const shareOf = (most: number): number => Math.min(most, level);
  const own = processes.find(({ process }) => process === self);
  if (own === undefined) return { take: 0, give: 0 };
  const missing = shareOf(own.most) - own.led;
  if (missing >= 0) return { take: missing, give: 0 };
  const wanted = processes.reduce((sum, { most, led }) => sum + Math.max(0, shareOf(most) - led), 0);
  return { take: 0, give: Math.min(wanted, Math.ceil(-missing * PART_GIVEN_UP)) };
}

/** The lowest level at which all sites are led: each process leads that many, or its most. */
function levelOf(sites: number, most: readonly number[]): number {
  let [low, high] = [0, Math.max(0, ...most)];
  while (low < high) {
    const level = Math.floor((low + high) / 2);
    const led = most.reduce((sum, limit) => sum + Math.min(limit, level), 0);
    if (led >= sites) high = level;
    else low = level + 1;
  }
  return low;
}
