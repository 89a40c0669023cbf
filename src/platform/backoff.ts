import { type Millis, millis } from "../domain/units.ts";

/** Full jitter: anywhere between zero and the ceiling, so that a depot of gateways does not retry in step. */
export const backoff = (failures: number, fraction: number, first: Millis, most: Millis): Millis =>
  millis(Math.round(fraction * Math.min(most, first * 2 ** Math.min(failures, 30))));
