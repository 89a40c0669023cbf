import type { Lease } from "../../store/postgres/lease.ts";

/** Time until a site that cannot be led is tried again, ms. */
export const TRY_AGAIN_MS = 10_000;
/** Longest time until a site whose control failed is led again, ms. It doubles with each failure. */
const LONGEST_BACKOFF_MS = 300_000;
/** A failure that is older does not count for the back-off, ms. */
const FORGOTTEN_AFTER_MS = 3_600_000;

/** Sites that are led again later. Their leases are kept until then, so that no other process tries them either. */
export class BackOffs {
  readonly #giveUp: (lease: Lease) => Promise<void>;
  readonly #timers = new Map<Lease, NodeJS.Timeout>();
  /** Failures of control by site. Monotonic clock, ms. */
  readonly #failures = new Map<string, { readonly count: number; readonly at: number }>();

  /** `giveUp`: gives up a lease at the end of its back-off. */
  constructor(giveUp: (lease: Lease) => Promise<void>) {
    this.#giveUp = giveUp;
  }

  /** Counts a failure of control. `wait`: the back-off of the site, ms. */
  failed(site: string, at: number): { readonly count: number; readonly wait: number } {
    const last = this.#failures.get(site);
    const count = last === undefined || at - last.at > FORGOTTEN_AFTER_MS ? 1 : last.count + 1;
    this.#failures.set(site, { count, at });
    return { count, wait: Math.min(TRY_AGAIN_MS * 2 ** (count - 1), LONGEST_BACKOFF_MS) };
  }

  /** `wait` in ms. */
  begin(lease: Lease, wait: number): void {
    this.#timers.set(lease, setTimeout(() => this.#end(lease), wait).unref());
  }

  /** The file of these sites changed: what failed before proves nothing about the new one. */
  end(sites: readonly string[]): void {
    const changed = new Set(sites);
    for (const site of changed) this.#failures.delete(site);
    for (const lease of this.#timers.keys()) if (changed.has(lease.site)) this.#end(lease);
  }

  #end(lease: Lease): void {
    clearTimeout(this.#timers.get(lease));
    this.#timers.delete(lease);
    void this.#giveUp(lease);
  }
}
