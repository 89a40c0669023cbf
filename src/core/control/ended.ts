import type { Instant, VehicleId } from "../units.ts";
import { askedOf, type ExpandContext } from "./expand.ts";
import type { TrackedEvent } from "./known.ts";

/** Why an event holds no more for a vehicle that acted on it. */
export type Ended = "in its time" | "withdrawn" | "no longer asked" | "cut short" | "put off";

/** What became of the event: undefined where it is known no more, and it is forgotten only after its time. */
export function howEnded(
  known: TrackedEvent | undefined,
  vehicle: VehicleId,
  context: ExpandContext,
  now: Instant,
): Ended {
  if (known?.kind === "withdrawn") return "withdrawn";
  if (known?.kind === "over") return known.was === "withdrawn" ? "withdrawn" : "in its time";
  // The usual end, where a fleet is released within moments: nobody's target is searched for.
  if (known === undefined || known.endings.length === 0) return "in its time";
  const asked = askedOf(known, vehicle, context);
  if (asked === null) return "no longer asked";
  if (asked.from > now) return "put off";
  return asked.until <= known.receivedAt ? "cut short" : "in its time";
}
