import type { Vehicle } from "../site/vehicle.ts";
import {
  after,
  amperes,
  earlier,
  holdsAt,
  type Instant,
  instant,
  later,
  type Millis,
  millis,
  type VehicleId,
  type Window,
  watts,
  type Watts,
} from "../units.ts";
import type { CoordinationEvent } from "./event.ts";
import { LONGEST_TAIL } from "./intake.ts";
import type { KnownEvent, Revision } from "./known.ts";
import type { Setpoint } from "./setpoint.ts";
import type { ControlSettings } from "./settings.ts";
import { fractionOf, startOffset } from "./startOffset.ts";
import { aimsAt, targeting } from "./targeting.ts";

/** One vehicle's share of an event. Derived whenever it is needed, never stored. */
export interface Dispatch extends Window {
  readonly event: CoordinationEvent;
  readonly vehicle: VehicleId;
  readonly offset: Millis;
  readonly setpoint: Setpoint;
  /** The event was withdrawn or changed at this moment; `until` is when this vehicle's turn to be released comes. */
  readonly cutAt: Instant | null;
}

export interface ExpandContext {
  /** 32 raw random bytes (`site.key`). */
  readonly siteKey: Uint8Array;
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: ControlSettings;
}

/**
 * Every dispatch that an event gives rise to: one per distinct vehicle of ours, and for vehicles that an edit or a
 * withdrawal took out in the middle, what is left until their release. Disjoint per vehicle. Unknown payload types
 * and zero durations give none (DESIGN 5.2, 5.3).
 */
export function expand(known: KnownEvent, context: ExpandContext): readonly Dispatch[] {
  const drawing: Drawing = {
    ...context,
    fractionOf: known.endings.length === 0 ? drawnFrom(context) : drawnOnce(context),
  };
  const live = known.kind === "live" ? dispatchesOf(known.revision, drawing) : NONE;
  if (known.endings.length === 0) return [...live.values()];
  return [...live.values(), ...tailsOf(known, live, drawing)];
}

/** What an expansion needs, with a source of each vehicle's fraction of the spread. */
interface Drawing extends ExpandContext {
  readonly fractionOf: (event: CoordinationEvent, vehicle: VehicleId) => number;
}

const drawnFrom =
  ({ siteKey }: ExpandContext): Drawing["fractionOf"] =>
  (event, vehicle) =>
    fractionOf(siteKey, event, vehicle);

/** Revisions that share start and spread draw alike: an event of many edits computes each vehicle's hash once. */
function drawnOnce({ siteKey }: ExpandContext): Drawing["fractionOf"] {
  const bySpread = new Map<string, Map<VehicleId, number>>();
  return (event, vehicle) => {
    const spread = `${event.wireStart} ${event.randomizeStart}`;
    const drawn = bySpread.get(spread) ?? new Map<VehicleId, number>();
    bySpread.set(spread, drawn);
    const fraction = drawn.get(vehicle) ?? fractionOf(siteKey, event, vehicle);
    drawn.set(vehicle, fraction);
    return fraction;
  };
}

type ByVehicle = ReadonlyMap<VehicleId, Dispatch>;
const NONE: ByVehicle = new Map();

function dispatchesOf(revision: Revision, context: Drawing): ByVehicle {
  const setpoint = setpointOf(revision.event, context.settings);
  if (setpoint === null) return NONE;
  const dispatches = new Map<VehicleId, Dispatch>();
  for (const vehicle of targeting(revision.event, context).vehicles) {
    const dispatch = dispatchOf(revision, vehicle, setpoint, context);
    if (dispatch !== null) dispatches.set(vehicle, dispatch);
  }
  return dispatches;
}

function dispatchOf(
  { event, start }: Revision,
  vehicle: VehicleId,
  setpoint: Setpoint,
  context: Drawing,
): Dispatch | null {
  const fraction = context.fractionOf(event, vehicle);
  const { offset, from, until } = dispatchWindow(event, start, fraction, context.settings);
  return from < until ? { event, vehicle, offset, from, until, setpoint, cutAt: null } : null;
}

/** What the revision that counts now asks of one vehicle, whenever that is or was; null: nothing. */
export function askedOf(
  { revision }: KnownEvent & { kind: "live" },
  vehicle: VehicleId,
  context: ExpandContext,
): Dispatch | null {
  const setpoint = setpointOf(revision.event, context.settings);
  if (setpoint === null || !aimsAt(revision.event, vehicle, context)) return null;
  return dispatchOf(revision, vehicle, setpoint, { ...context, fractionOf: drawnFrom(context) });
}

/** The whole dispatch shifts by its offset: every vehicle acts for the full duration, and releases are spread too. */
function dispatchWindow(
  { duration, randomizeStart }: CoordinationEvent,
  start: Instant,
  fraction: number,
  { randomizedEnd }: ControlSettings,
): Window & { offset: Millis } {
  if (randomizedEnd === "shift") {
    const offset = startOffset(fraction, randomizeStart);
    const from = after(start, offset);
    return { offset, from, until: after(from, duration) };
  }
  const offset = startOffset(fraction, millis(Math.min(randomizeStart, duration)));
  return { offset, from: after(start, offset), until: after(start, duration) };
}

/** Null: nothing that is acted on. */
function setpointOf({ ask, duration }: CoordinationEvent, { powerUnit }: ControlSettings): Setpoint | null {
  if (duration <= 0) return null;
  switch (ask.kind) {
    case "current":
      return { kind: "current", amperes: amperes(ask.level) };
    case "power":
      return { kind: "power", watts: powerUnit === "kW" ? fromKilowatts(ask.level) : watts(ask.level) };
    case "unknown":
      return null;
  }
}

/** 16.08 kW are 16080 W, and not 16079.999999999998; and no number of kilowatts is infinite. */
function fromKilowatts(level: number): Watts {
  const most = Number.MAX_VALUE;
  return watts(Math.min(most, Math.max(-most, Number((level * 1000).toPrecision(12)))));
}

/**
 * What is left of revisions that were replaced or withdrawn while a vehicle acted on them: it is released at
 * min(its own end, T + u x min(randomizeStart, 10 min)), never all at once (DESIGN 5.2). Walks the endings from the
 * oldest: a later revision takes over from what was left, unless it was over for that vehicle before it came.
 */
function tailsOf(known: KnownEvent, live: ByVehicle, context: Drawing): readonly Dispatch[] {
  const tails = new Map<VehicleId, Dispatch>();
  let since = instant(0);
  for (const { revision, at } of known.endings) {
    for (const [vehicle, dispatch] of dispatchesOf(revision, context)) {
      if (dispatch.from <= at && since < dispatch.until) tails.delete(vehicle);
      if (holdsAt(dispatch, at)) tails.set(vehicle, cut(dispatch, at, context));
    }
    since = at;
  }
  return [...tails.values()]
    .map((tail) => besides(tail, live.get(tail.vehicle), known.receivedAt))
    .filter((tail) => tail.from < tail.until);
}

/** A tail without the time that belongs to the revision that counts now, if that could act at all since it came. */
function besides(tail: Dispatch, next: Dispatch | undefined, since: Instant): Dispatch {
  if (next === undefined) return tail;
  return since < next.until
    ? { ...tail, until: earlier(tail.until, next.from) }
    : { ...tail, from: later(tail.from, next.until) };
}

function cut(dispatch: Dispatch, at: Instant, context: Drawing): Dispatch {
  const { event, vehicle, until } = dispatch;
  const spread = Math.min(event.randomizeStart, LONGEST_TAIL);
  const release = after(at, millis(Math.floor(context.fractionOf(event, vehicle) * spread)));
  return { ...dispatch, until: earlier(until, release), cutAt: at };
}
