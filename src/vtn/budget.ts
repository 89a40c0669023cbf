/** Monotonic clock, ms. */
export type Monotonic = () => number;

const HOUR = 3_600_000;

export interface HourlyBudget {
  /** False: the budget is spent. */
  (): boolean;
  /** Requests within the last hour. */
  readonly taken: () => number;
}

/**
 * At most `limit` requests in any sliding hour. Bounds our requests even if everything else retries wrongly.
 * `onSpent` is called for the first refusal after an hour without one.
 */
export function hourlyBudget(
  limit: number,
  monotonic: Monotonic,
  onSpent: () => void = () => {},
): HourlyBudget {
  const taken: number[] = [];
  let refusedAt = Number.NEGATIVE_INFINITY;
  const expire = (now: number): void => {
    while (taken[0] !== undefined && taken[0] <= now - HOUR) taken.shift();
  };
  const take = (): boolean => {
    const now = monotonic();
    expire(now);
    if (taken.length >= limit) {
      if (refusedAt <= now - HOUR) onSpent();
      refusedAt = now;
      return false;
    }
    taken.push(now);
    return true;
  };
  const count = (): number => {
    expire(monotonic());
    return taken.length;
  };
  return Object.assign(take, { taken: count });
}

export interface Pace {
  readonly perSecond: number;
  readonly burst: number;
}

/** A token bucket. False: the pace is exceeded. */
export function bucket(pace: Pace, monotonic: Monotonic): () => boolean {
  let level = pace.burst;
  let at = monotonic();
  return () => {
    const now = monotonic();
    level = Math.min(pace.burst, level + ((now - at) / 1000) * pace.perSecond);
    at = now;
    if (level < 1) return false;
    level -= 1;
    return true;
  };
}

/**
 * A bucket for each address. Only the `kept` most recent addresses are stored, so a flood of addresses cannot
 * fill the memory.
 */
export function bucketPerAddress(
  pace: Pace,
  monotonic: Monotonic,
  kept = 10_000,
): (address: string) => boolean {
  const buckets = new Map<string, () => boolean>();
  return (address) => {
    const take = buckets.get(address) ?? bucket(pace, monotonic);
    buckets.delete(address);
    buckets.set(address, take);
    const [oldest] = buckets.keys();
    if (buckets.size > kept && oldest !== undefined) buckets.delete(oldest);
    return take();
  };
}
