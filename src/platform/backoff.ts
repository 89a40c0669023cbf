import { type Millis, millis } from "../domain/units.ts";

/**
 * Full jitter: uniform between zero and the ceiling, so that gateways do not retry at the same time. `fraction`:
 * random, 0 to 1.
 */
export const backoff = (failures: number, fraction: number, first: Millis, most: Millis): Millis =>
  millis(Math.round(fraction * Math.min(most, first * 2 ** Math.min(failures, 30))));
