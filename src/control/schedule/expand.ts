import { createHmac } from "node:crypto";

import {
  type CoordinationEvent,
  type Ending,
  type KnownEvent,
  type Revision,
  LONGEST_TAIL,
} from "../../domain/event.ts";
import { type Setpoint, setpointOf } from "../../domain/setpoint.ts";
import {
  after,
  earlier,
  isOpenAt,
  type Instant,
  instant,
  later,
  type Millis,
  millis,
  type VehicleId,
  type Window,
} from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import { inSteps, type ResumableTask, runToEnd } from "../../platform/cooperative.ts";
import type { ControlSettings } from "../ports.ts";
import { aimsAt, targeting } from "./targeting.ts";

/**
 * A vehicle's share of an event. Derived whenever it is needed, never stored.
 * Members may be computed, so a copy with a spread lacks them.
 */
export interface Dispatch extends Window {
  readonly event: CoordinationEvent;
  readonly vehicle: VehicleId;
  readonly offset: Millis;
  readonly setpoint: Setpoint;
  /** Time of the withdrawal or edit. `until` is then this vehicle's slot in the release ramp. */
  readonly cutAt: Instant | null;
  /** Facts about it that are on record, one bit for each `Mark`. */
  marks: number;
}

/** The request of one revision, which the dispatches of all its vehicles share. */
interface Asked extends Revision {
  readonly setpoint: Setpoint;
  /** False: every vehicle ends at the same moment, whenever it started. */
  readonly shiftsEnd: boolean;
}

/** A dispatch of the current revision. Millions may be in memory: what can be computed is not kept, and no moment is boxed. */
class CurrentDispatch implements Dispatch {
  readonly asked: Asked;
  readonly vehicle: VehicleId;
  readonly offset: Millis;
  marks = 0;

  constructor(asked: Asked, vehicle: VehicleId, offset: Millis) {
    this.asked = asked;
    this.vehicle = vehicle;
    this.offset = offset;
  }

  get event(): CoordinationEvent {
    return this.asked.event;
  }

  get setpoint(): Setpoint {
    return this.asked.setpoint;
  }

  get from(): Instant {
    return after(this.asked.start, this.offset);
  }

  get until(): Instant {
    const { event, start, shiftsEnd } = this.asked;
    return after(shiftsEnd ? this.from : start, event.duration);
  }

  get cutAt(): null {
    return null;
  }
}

export interface ExpandContext {
  /** 32 raw random bytes (`site.key`). */
  readonly siteKey: Uint8Array;
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: ControlSettings;
}

/** The dispatches of one event, and the input for expanding its next revision. */
export interface Expansion {
  readonly known: KnownEvent;
  readonly dispatches: readonly Dispatch[];
  /** Dispatches of the current revision. */
  readonly live: ByVehicle;
  /** Remainders of earlier revisions, if no later one took over. */
  readonly tails: ByVehicle;
  readonly draws: Draws;
}

/** Each vehicle's fraction of the random start, by start and range. */
type Draws = ReadonlyMap<string, Map<VehicleId, number>>;

/**
 * All dispatches of an event: one per distinct vehicle of ours, disjoint per vehicle.
 * A vehicle that an edit or a withdrawal removed keeps a remainder until its release.
 * Unknown payload types and zero durations give none.
 */
export const expand = (known: KnownEvent, context: ExpandContext): readonly Dispatch[] =>
  runToEnd(expandAfter(null, known, context)).dispatches;

/** Expands from the previous revision: the cost of an edit does not grow with the number of earlier edits. */
export function* expandAfter(
  before: Expansion | null,
  known: KnownEvent,
  context: ExpandContext,
): ResumableTask<Expansion> {
  const draws = new Map<string, Map<VehicleId, number>>();
  const drawing: Drawing = { ...context, fractionOf: drawnOnce(context, draws, before?.draws) };
  const live = known.kind === "live" ? yield* dispatchesOf(known.revision, drawing) : NONE;
  yield;
  const tails = yield* tailsOf(known.endings, before, drawing);
  yield;
  return { known, dispatches: yield* besides(tails, live, known.receivedAt), live, tails, draws };
}

/** Input of an expansion, with a source of each vehicle's fraction. */
interface Drawing extends ExpandContext {
  readonly fractionOf: (event: CoordinationEvent, vehicle: VehicleId) => number;
}

/**
 * Revisions that share start and range share the fractions. Each vehicle's hash is computed once per event.
 */
const drawnOnce =
  (
    { siteKey }: ExpandContext,
    draws: Map<string, Map<VehicleId, number>>,
    before: Draws = new Map(),
  ): Drawing["fractionOf"] =>
  (event, vehicle) => {
    if (event.randomizeStart === 0) return 0;
    const spread = `${event.wireStart} ${event.randomizeStart}`;
    const drawn = draws.get(spread) ?? before.get(spread) ?? new Map<VehicleId, number>();
    draws.set(spread, drawn);
    const fraction = drawn.get(vehicle) ?? fractionOf(siteKey, event, vehicle);
    drawn.set(vehicle, fraction);
    return fraction;
  };

type ByVehicle = ReadonlyMap<VehicleId, Dispatch>;
const NONE: ByVehicle = new Map();

function* dispatchesOf(revision: Revision, context: Drawing): ResumableTask<ByVehicle> {
  const asked = askedBy(revision, context);
  if (asked === null) return NONE;
  const dispatches = new Map<VehicleId, Dispatch>();
  yield* inSteps(targeting(revision.event, context).vehicles, (vehicle) => {
    const dispatch = dispatchOf(asked, vehicle, context);
    if (dispatch !== null) dispatches.set(vehicle, dispatch);
  });
  return dispatches;
}

/** The whole dispatch shifts by its offset. Every vehicle acts for the full duration, and releases are spread too. */
function dispatchOf(asked: Asked, vehicle: VehicleId, context: Drawing): Dispatch | null {
  const { event, shiftsEnd } = asked;
  const spread = shiftsEnd ? event.randomizeStart : millis(Math.min(event.randomizeStart, event.duration));
  const offset = startOffset(context.fractionOf(event, vehicle), spread);
  const dispatch = new CurrentDispatch(asked, vehicle, offset);
  return dispatch.from < dispatch.until ? dispatch : null;
}

/** The dispatch of the current revision for one vehicle, at any time. Null: none. */
export function askedOf(
  { revision }: KnownEvent & { kind: "live" },
  vehicle: VehicleId,
  context: ExpandContext,
): Dispatch | null {
  const asked = askedBy(revision, context);
  if (asked === null || !aimsAt(revision.event, vehicle, context)) return null;
  return dispatchOf(asked, vehicle, { ...context, fractionOf: drawnOnce(context, new Map()) });
}

/** Null: no setpoint to act on. */
function askedBy({ event, start }: Revision, { settings }: ExpandContext): Asked | null {
  const setpoint = setpointOf(event, settings.powerUnit);
  return setpoint && { event, start, setpoint, shiftsEnd: settings.randomizedEnd === "shift" };
}

/**
 * Remainders of revisions that were replaced or withdrawn while a vehicle acted on them.
 * Release is at min(own end, T + u x min(randomizeStart, 10 min)), so vehicles are not released all at once.
 * Walks the endings from the oldest. A later revision takes over a remainder, unless it ended before for that
 * vehicle.
 */
function* tailsOf(
  endings: readonly Ending[],
  before: Expansion | null,
  context: Drawing,
): ResumableTask<ByVehicle> {
  const [earlier, last] = [endings.slice(0, -1), endings.at(-1)];
  if (last === undefined) return NONE;
  if (before !== null && isEndOf(endings, before.known.endings))
    return yield* keptTails(before.tails, endings);
  // The usual edit: the revision that ended is the previous one.
  const isNext =
    before?.known.kind === "live" &&
    before.known.revision === last.revision &&
    isEndOf(earlier, before.known.endings);
  if (isNext) {
    const kept = yield* keptTails(before.tails, earlier);
    return yield* overtaken(kept, before.live, earlier.at(-1)?.at ?? LONG_AGO, last.at, context);
  }
  let tails: ByVehicle = NONE;
  let since = LONG_AGO;
  for (const { revision, at } of endings) {
    tails = yield* overtaken(tails, yield* dispatchesOf(revision, context), since, at, context);
    since = at;
  }
  return tails;
}

const LONG_AGO = instant(0);

/** True: `endings` are the newest of `all`, the same objects. */
const isEndOf = (endings: readonly Ending[], all: readonly Ending[]): boolean =>
  endings.every((ending, index) => ending === all[all.length - endings.length + index]);

/** Drops the tails of endings that no longer count. */
function* keptTails(tails: ByVehicle, endings: readonly Ending[]): ResumableTask<ByVehicle> {
  const events = new Set(endings.map(({ revision }) => revision.event));
  const kept = new Map<VehicleId, Dispatch>();
  yield* inSteps(tails, ([vehicle, tail]) => {
    if (events.has(tail.event)) kept.set(vehicle, tail);
  });
  return kept;
}

/** A revision arrived at `since` and ended at `at`. It took over from these tails and leaves its own. */
function* overtaken(
  before: ByVehicle,
  dispatches: ByVehicle,
  since: Instant,
  at: Instant,
  context: Drawing,
): ResumableTask<ByVehicle> {
  const tails = new Map(before);
  yield* inSteps(dispatches, ([vehicle, dispatch]) => {
    if (dispatch.from <= at && since < dispatch.until) tails.delete(vehicle);
    if (isOpenAt(dispatch, at)) tails.set(vehicle, cut(dispatch, at, context));
  });
  return tails;
}

/**
 * The current dispatches, and the part of each tail outside them.
 * A current dispatch that ended before it arrived leaves the tail whole.
 */
function* besides(tails: ByVehicle, live: ByVehicle, since: Instant): ResumableTask<readonly Dispatch[]> {
  const dispatches = [...live.values()];
  yield* inSteps(tails.values(), (tail) => {
    const next = live.get(tail.vehicle);
    const left = next === undefined ? tail : beside(tail, next, since);
    if (left.from < left.until) dispatches.push(left);
  });
  return dispatches;
}

const beside = (tail: Dispatch, next: Dispatch, since: Instant): Dispatch =>
  since < next.until
    ? { ...tail, until: earlier(tail.until, next.from), marks: 0 }
    : { ...tail, from: later(tail.from, next.until), marks: 0 };

function cut(dispatch: Dispatch, at: Instant, context: Drawing): Dispatch {
  const { event, vehicle, offset, setpoint, from, until } = dispatch;
  const spread = Math.min(event.randomizeStart, LONGEST_TAIL);
  const release = after(at, millis(Math.floor(context.fractionOf(event, vehicle) * spread)));
  return { event, vehicle, offset, setpoint, from, until: earlier(until, release), cutAt: at, marks: 0 };
}

/**
 * A vehicle's own fraction of an event's range, in [0, 1).
 * Keyed, so that others cannot predict it.
 * Derived, so that it is the same after a restart, a redelivery, and on a second gateway with the same key.
 */
export function fractionOf(siteKey: Uint8Array, event: CoordinationEvent, vehicle: VehicleId): number {
  // No random start: hashes for thousands of vehicles that start at once would only delay them.
  if (event.randomizeStart === 0) return 0;
  const seed = JSON.stringify([event.id, vehicle, event.wireStart, event.randomizeStart]);
  return createHmac("sha256", siteKey).update(seed).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** Whole milliseconds in [0, spread], both ends included. */
export const startOffset = (fraction: number, spread: Millis): Millis =>
  millis(Math.floor(fraction * (spread + 1)));
