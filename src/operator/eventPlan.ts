import { applyingHold } from "../control/holds/holds.ts";
import { holdsAhead } from "../control/decide/ahead.ts";
import { levelAtRest } from "../control/decide/limits.ts";
import { type Verdict, verdict } from "../control/decide/verdict.ts";
import { type Dispatch, expandAfter } from "../control/schedule/expand.ts";
import { RankedInForce } from "../control/schedule/vehiclePlan.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Charger } from "../domain/charger.ts";
import type { KnownEvent } from "../domain/event.ts";
import { endOf } from "../domain/hold.ts";
import { restOf } from "../domain/reason.ts";
import { type Desired, type LevelView, viewOf } from "../domain/setpoint.ts";
import { eventId, instant, type Instant, iso, isOpenAt, later, type Window } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { ResumableTask } from "../platform/cooperative.ts";
import { type Answer, conflict } from "./answer.ts";

/**
 * The verdict of a charger at a later moment. The vehicle is taken to be where it is now. Measurements do not count.
 * `tried`: a dispatch of a dry run, in place of those of its event. Null: none.
 */
export function verdictAhead(
  state: ControlState,
  charger: Charger,
  vehicle: Vehicle | null,
  at: Instant,
  tried: Dispatch | null = null,
): Verdict {
  const inForce = new RankedInForce(state.settings);
  const planned = vehicle === null ? [] : state.agenda.of(vehicle.id);
  for (const dispatch of [
    ...planned.filter(({ event }) => event.id !== tried?.event.id),
    ...(tried ? [tried] : []),
  ])
    if (isOpenAt(dispatch, at)) inForce.add(dispatch);
  const over = holdsAhead(state.holds, charger.id, vehicle?.id ?? null, at);
  return verdict({
    charger,
    vehicle,
    occupant: state.occupancy.at(charger.id),
    inForce,
    hold: applyingHold(over, inForce),
    measuredVoltage: null,
    measuredPhases: null,
  });
}

/**
 * The level at which a charger stays at the end of a time, by the plan, since an event ended within it or before it
 * (`atEnd`). Null: none. The end of a hold frees the charger.
 */
export function restAhead(
  state: ControlState,
  charger: Charger,
  vehicle: Vehicle,
  { from, until }: Window,
): LevelView | null {
  const ends = state.agenda.of(vehicle.id).map((dispatch) => dispatch.until);
  const lastEnd = ends.filter((end) => from < end && end <= until).reduce(later, instant(0));
  if (state.holds.over(charger.id, vehicle.id, from).some((hold) => endOf(hold) >= lastEnd)) return null;
  return lastEnd > 0 ? levelAtRest(charger, vehicle) : restOf(state.commands.get(charger.id)?.command);
}

/** Cap on vehicles in an answer. The others are counted. */
const MOST_VEHICLES = 1_000;

/**
 * Plan of each vehicle of an event: at its start, or now if it has begun. `recorded`: the event as it is stored, for a dry
 * run: as if it started now, with the start offsets that it had.
 */
export function* eventPlan(
  state: ControlState,
  id: string,
  now: Instant,
  recorded: KnownEvent | null = null,
): ResumableTask<Answer<Json>> {
  const known = eventId(id);
  if (!state.known.has(known))
    return {
      ok: false,
      problem: {
        status: 404,
        title: `there is no event ${id}`,
        detail: "GET /api/v1/events lists those that are known",
        errors: [],
      },
    };
  if (recorded?.kind === "withdrawn")
    return conflict(`event ${id} was withdrawn`, "what it asked for is not stored any more");
  const ahead =
    recorded === null
      ? state.agenda.ofEvent(known).filter(({ until }) => until > now)
      : (yield* expandAfter(null, startingAt(recorded, now), state.expansion)).dispatches;
  const rows: Json[] = [];
  for (const dispatch of ahead.toSorted((a, b) => a.from - b.from).slice(0, MOST_VEHICLES)) {
    rows.push(rowOf(state, dispatch, now, recorded === null ? null : dispatch));
    yield;
  }
  return {
    ok: true,
    value: {
      event: id,
      now: iso(now),
      vehicles: new Set(ahead.map(({ vehicle }) => vehicle)).size,
      mode: state.mode.current,
      rows,
    },
  };
}

const startingAt = (known: KnownEvent & { readonly kind: "live" }, start: Instant): KnownEvent => ({
  ...known,
  revision: { ...known.revision, start },
  endings: [],
});

/** `tried`: see `verdictAhead`. */
function rowOf(state: ControlState, dispatch: Dispatch, now: Instant, tried: Dispatch | null): Json {
  const { vehicle: id, from, until, offset, setpoint } = dispatch;
  const vehicle = state.vehicles.get(id) ?? null;
  const place = state.occupancy.where(id);
  const charger = place === null ? null : (state.chargers.get(place) ?? null);
  const common = {
    vehicle: id,
    charger: place,
    from: iso(from),
    until: iso(until),
    offsetMs: offset,
    asked: viewOf(setpoint),
  };
  if (charger === null)
    return {
      ...common,
      outcome: "absent",
      gets: null,
      winner: null,
      hold: null,
      limits: [],
      interrupted: [],
    };
  const found = verdictAhead(state, charger, vehicle, later(from, now), tried);
  return {
    ...common,
    outcome: outcomeOf(found, dispatch),
    gets: viewOf(found.desired),
    winner: found.winner?.event.id ?? null,
    hold: found.hold?.id ?? null,
    limits: found.limits.map(({ by }) => by),
    interrupted: interruptionsOf(state, charger, vehicle, dispatch, now, tried),
  };
}

function outcomeOf({ winner, hold, desired }: Verdict, { event, setpoint }: Dispatch): string {
  if (winner?.event.id === event.id) return isSameLevel(desired, setpoint) ? "asked" : "limited";
  return winner === null && hold !== null ? "held" : "overruled";
}

const isSameLevel = (desired: Desired, asked: Desired): boolean =>
  JSON.stringify(viewOf(desired)) === JSON.stringify(viewOf(asked));

/** Other events that take over while this one lasts, each from its start. */
function interruptionsOf(
  state: ControlState,
  charger: Charger,
  vehicle: Vehicle | null,
  { event, from, until, vehicle: id }: Dispatch,
  now: Instant,
  tried: Dispatch | null,
): Json {
  const start = later(from, now);
  return state.agenda
    .of(id)
    .filter((other) => other.event.id !== event.id && other.from > start && other.from < until)
    .filter(
      (other) => verdictAhead(state, charger, vehicle, other.from, tried).winner?.event.id === other.event.id,
    )
    .toSorted((a, b) => a.from - b.from)
    .map((other) => ({ event: other.event.id, from: iso(other.from), until: iso(other.until) }));
}
