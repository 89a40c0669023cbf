import { auditRow } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import { openUntil } from "../../domain/event.ts";
import { formatHoldLevel, type Hold, type HoldScope, isRelease, setAsideBy } from "../../domain/hold.ts";
import { type ChargerId, type EventId, type Instant, later, type VehicleId } from "../../domain/units.ts";
import type { Verdict } from "../decide/verdict.ts";
import type { Dispatch } from "../schedule/expand.ts";
import type { ControlState } from "../state.ts";
import { formatEnd } from "./holds.ts";

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

/** The row that a hold sets an event aside on this charger, where that is new. */
export function effectOf(
  state: ControlState,
  { charger, vehicle, hold, winner, overruled }: Verdict,
  now: Instant,
): readonly Change[] {
  const event =
    hold === null || winner !== null
      ? undefined
      : (overruled[0]?.event.id ?? heldEvent(state, vehicle, hold, now));
  if (hold === null || vehicle === null || event === undefined || isRelease(hold)) {
    state.holds.noteEffect(charger.id, null);
    return [];
  }
  const row = effectRow(state, charger.id, { hold, event, vehicle: vehicle.id }, now);
  return row === null ? [] : [row];
}

const heldEvent = (
  state: ControlState,
  vehicle: Verdict["vehicle"],
  hold: Hold,
  now: Instant,
): EventId | undefined =>
  vehicle === null
    ? undefined
    : state.agenda.allInForce(vehicle.id, now).find(({ event }) => setAsideBy(hold).has(event.id))?.event.id;

/**
 * The row that a hold sets an event aside on a charger, once for each event that would win there. Reports take it as the
 * moment from which the vehicle is opted out. Null: nothing new.
 */
export function effectRow(
  state: ControlState,
  charger: ChargerId,
  { hold, event, vehicle }: { readonly hold: Hold; readonly event: EventId; readonly vehicle: VehicleId },
  now: Instant,
): Change | null {
  if (!state.holds.noteEffect(charger, `${hold.id} ${event} ${vehicle}`)) return null;
  return auditRow(
    "operator",
    now,
    `hold ${hold.id} of ${hold.by}: event ${event} does not apply to ${charger}, which gets ${hold.level === null ? "its own default" : formatHoldLevel(hold)} ${formatEnd(hold, state.wallClock)}`,
    {
      charger,
      vehicle,
      event,
      facts: { cause: "operator", hold: hold.id, effect: true },
    },
  );
}
