import { createHmac } from "node:crypto";

import { type Millis, millis, type VehicleId } from "../units.ts";
import type { CoordinationEvent } from "./event.ts";

/**
 * A vehicle's own fraction of an event's spread, in [0, 1): keyed, so that others cannot predict it, and derived,
 * so that it is the same after a restart, a redelivery, or on a second gateway with the same key (DESIGN 5.3).
 */
export function fractionOf(siteKey: Uint8Array, event: CoordinationEvent, vehicle: VehicleId): number {
  // Nothing to draw: a hash for each of thousands of vehicles that all start at once would only keep them waiting.
  if (event.randomizeStart === 0) return 0;
  const seed = JSON.stringify([event.id, vehicle, event.wireStart, event.randomizeStart]);
  return createHmac("sha256", siteKey).update(seed).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** Whole milliseconds in [0, spread], both ends included (partner-interface 2.4). */
export const startOffset = (fraction: number, spread: Millis): Millis =>
  millis(Math.floor(fraction * (spread + 1)));
