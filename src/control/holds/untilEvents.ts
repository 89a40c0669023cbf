import { openUntil } from "../../domain/event.ts";
import type { Hold, HoldScope } from "../../domain/hold.ts";
import { type EventId, type Instant, later } from "../../domain/units.ts";
import type { Dispatch } from "../schedule/expand.ts";
import type { ControlState } from "../state.ts";

/**
 * Latest moment at which the events of a hold may act. A withdrawn event is kept for the slots of its releases, and a
 * level does not wait for those. Null: the events are over.
 */
export function eventsUntil(
  state: ControlState,
  { level, scope, since }: Hold,
  events: readonly EventId[],
  now: Instant,
): Instant | null {
  const open = events.flatMap((event) => openUntil(state.known.get(event), now, since) ?? []);
  if (open.length === 0 || (level !== null && !isInForce(state, scope, events, now))) return null;
  return open.reduce(later);
}

/** A hold until events whose last window was extended, with its new end. Null: none of them is in force any more. */
export function extendedHold(state: ControlState, hold: Hold, now: Instant): Hold | null {
  const { end, cap } = hold;
  if (end.kind !== "events" || (cap !== null && cap <= now)) return null;
  const exempt = new Set(end.events);
  const inForce = [...dispatchesUnder(state, hold.scope, now)].filter(({ event }) => exempt.has(event.id));
  if (inForce.length === 0) return null;
  const latest = inForce.map(({ until }) => until).reduce(later);
  return latest <= now ? null : { ...hold, end: { ...end, latest } };
}

function isInForce(state: ControlState, scope: HoldScope, events: readonly EventId[], now: Instant): boolean {
  const wanted = new Set(events);
  // A site has thousands of chargers, and each evaluation asks: the first dispatch that is found ends the search.
  for (const { event } of dispatchesUnder(state, scope, now)) if (wanted.has(event.id)) return true;
  return false;
}

/** Dispatches in force for the vehicles in this scope, found one by one. */
export function* dispatchesUnder(state: ControlState, scope: HoldScope, now: Instant): Generator<Dispatch> {
  if (scope.kind === "vehicle") {
    yield* state.agenda.allInForce(scope.vehicle, now);
    return;
  }
  for (const charger of scope.kind === "charger" ? [scope.charger] : state.chargers.keys()) {
    const occupant = state.occupancy.at(charger);
    if (occupant.kind === "vehicle") yield* state.agenda.allInForce(occupant.vehicle, now);
  }
}
