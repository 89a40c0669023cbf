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
