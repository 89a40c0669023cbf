import type { AllowedStretch } from "../control/decide/ahead.ts";
import { closeHold, hasLeft, ITSELF, openHold } from "../control/holds/lifecycle.ts";
import { NO_CHANGES, type StageResult } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import { type Hold, type HoldEnd, LONGEST_HOLD } from "../domain/hold.ts";
import {
  after,
  earlier,
  type Instant,
  instant,
  minutes,
  type VehicleId,
  type Window,
} from "../domain/units.ts";
import type { Expected } from "./board.ts";
import { slowerBy } from "./forecast.ts";

/** Name of the guard on record. */
export const GUARD = "departure guard";
/** Time before the latest moment at which a hold of the guard opens: a charger and a vehicle need time to follow. */
const LEAD = minutes(3);
const HOUR_MS = 3_600_000;
/** Cap on vehicles that are considered at once: those with the earliest start. */
const MOST_CONSIDERED = 500;

/** The time for which the guard frees a vehicle from events. */
export interface GuardPlan extends Window {
  readonly vehicle: VehicleId;
  /** True: it will have what it needs. */
  readonly isInTime: boolean;
  /** The shortfall without the guard, for people. */
  readonly because: string;
}

/**
 * The latest moment from which full power until `at` still delivers what is missing, with the plan until then. Null:
 * not even from now on. `powerOf`: power by the plan, never above `fullW`.
 */
export function latestStart(
  stretches: readonly AllowedStretch[],
  powerOf: (stretch: AllowedStretch) => number,
  { fullW, remainingWh, at }: { readonly fullW: number; readonly remainingWh: number; readonly at: Instant },
): Instant | null {
  let planned = 0;
  let latest: Instant | null = null;
  for (const stretch of stretches) {
    const { from } = stretch;
    const until = earlier(stretch.until, at);
    if (from >= at) break;
    const watts = powerOf(stretch);
    const fullAfter = (moment: number): number => ((at - moment) / HOUR_MS) * fullW;
    if (planned + fullAfter(from) < remainingWh) break;
    const whole = planned + ((until - from) / HOUR_MS) * watts;
    if (whole + fullAfter(until) >= remainingWh) latest = until;
    else {
      // Each hour of waiting costs the difference of the two powers.
      const spare = planned + fullAfter(from) - remainingWh;
      return instant(from + Math.floor((spare / (fullW - watts)) * HOUR_MS));
    }
    planned = whole;
  }
  return latest;
}

/** The time for which a vehicle must be freed to leave with what it needs. Null: no event keeps that from it. */
export function guardPlan(
  { vehicle, departure, measured, stretches, state, because, rampWait }: Expected,
  now: Instant,
): GuardPlan | null {
  const { remainingWh, drawsW, mostW, isFinished, obstacle, bands } = measured;
  if (state !== "short" || remainingWh === null || isFinished || obstacle !== null) return null;
  const fullW = Math.min(mostW, drawsW ?? Infinity);
  const isHeld = stretches.some(({ from, hold }) => from < departure.at && hold?.level != null);
  const costs = stretches.some(
    ({ from, event, allowedW }) => event !== null && from < departure.at && allowedW < fullW,
  );
  if (isHeld || !costs || fullW <= 0 || !Number.isFinite(fullW)) return null;
  const powerOf = ({ allowedW }: AllowedStretch): number => Math.min(allowedW, fullW);
  // The end of the charge takes longer than full power does, and the release waits for others.
  const slower = slowerBy(bands, remainingWh, fullW) * HOUR_MS + rampWait;
  const latest = latestStart(stretches, powerOf, {
    fullW,
    remainingWh,
    at: instant(departure.at - slower),
  });
  const from = instant(Math.max(now, (latest ?? now) - LEAD));
  return { vehicle: vehicle.id, from, until: departure.at, isInTime: latest !== null, because };
}

/**
 * The plans that may be carried out with at most `most` vehicles freed at a time: those that start first. `open`: ends of
 * the guard's holds that are open.
 */
export function admitted(
  plans: readonly GuardPlan[],
  open: readonly Instant[],
  most: number,
  now: Instant,
): readonly GuardPlan[] {
  const taken: Window[] = open.map((until) => ({ from: now, until }));
  const found: GuardPlan[] = [];
  const inOrder = plans
    .toSorted((a, b) => a.from - b.from || a.until - b.until || (a.vehicle < b.vehicle ? -1 : 1))
    .slice(0, MOST_CONSIDERED);
  for (const plan of inOrder) {
    // Plans are in the order of their start: the fullest moment of this one is its start.
    const beside = taken.filter(({ until }) => until > plan.from);
    if (beside.length >= most) continue;
    taken.push(plan);
    found.push(plan);
  }
  return found;
}

/** The guard's holds that are open. */
export const guardHolds = (state: ControlState): readonly Hold[] =>
  state.holds.open().filter(({ by }) => by === GUARD);

/** Vehicles with a departure for which a person has ended the hold of the guard, as keys of `declinedKey`. */
export function declined(state: ControlState): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { by, scope, cap, ended } of state.holds.all())
    if (by === GUARD && scope.kind === "vehicle" && ended !== null && ended.by !== ITSELF)
      keys.add(declinedKey(scope.vehicle, cap));
  return keys;
}

export const declinedKey = (vehicle: VehicleId, at: Instant | null): string => `${at} ${vehicle}`;

/** Opens the hold of the guard, unless the vehicle has one, or `most` vehicles are freed already. */
export function openGuardHold(
  state: ControlState,
  expected: Expected,
  { because }: Pick<GuardPlan, "because">,
  most: number,
  now: Instant,
): StageResult {
  const { vehicle, departure } = expected;
  const open = guardHolds(state);
  const isFreed = open.some(({ scope }) => scope.kind === "vehicle" && scope.vehicle === vehicle.id);
  if (isFreed || open.length >= most || departure.at <= now) return NO_CHANGES;
  const hold: Hold = {
    id: state.nextHoldId(),
    scope: { kind: "vehicle", vehicle: vehicle.id },
    level: null,
    end: endOf(state, expected),
    since: now,
    cap: capOf(departure.at, now),
    by: GUARD,
    reason: because,
    key: null,
    ended: null,
  };
  return openHold(state, hold, now);
}

/** Latest end of a hold that opens at `since`. */
const capOf = (departure: Instant, since: Instant): Instant => earlier(departure, after(since, LONGEST_HOLD));

/** Why an open hold of the guard is over before its own end. Null: it goes on. */
export function whyOver(state: ControlState, hold: Hold, expected: Expected | null): string | null {
  if (hasUnplugged(state, hold)) return "unplugged";
  if (expected === null) return "the vehicle has no departure any more";
  const { departure, measured } = expected;
  if (measured.remainingWh !== null && measured.remainingWh <= 0) return "the vehicle has what it needs";
  const isLater = hold.cap !== null && hold.cap < capOf(departure.at, hold.since);
  return isLater ? `the vehicle leaves ${state.wallClock(departure.at)}` : null;
}

function hasUnplugged(state: ControlState, hold: Hold): boolean {
  const { scope, end } = hold;
  if (scope.kind !== "vehicle" || end.kind !== "energy") return false;
  return hasLeft(state, hold, { kind: "unplugged", charger: end.meter.charger, vehicle: scope.vehicle });
}

/** Ends a hold of the guard, and opens the next one where the vehicle still needs it. Null: it does not. */
export function endGuardHold(
  state: ControlState,
  { id }: Pick<Hold, "id">,
  why: string,
  next: (() => StageResult) | null,
  now: Instant,
): StageResult {
  const hold = state.holds.get(id);
  if (hold === undefined || hold.ended !== null) return NO_CHANGES;
  const closed = closeHold(state, hold, ITSELF, why, now);
  const opened = next?.() ?? NO_CHANGES;
  return {
    changes: [...closed.changes, ...opened.changes],
    reevaluations: [...closed.reevaluations, ...opened.reevaluations],
  };
}

/** End of the hold: the missing energy is delivered; without a register in the charger, the unplug. */
function endOf(state: ControlState, { vehicle, departure, measured }: Expected): HoldEnd {
  const { charger, remainingWh } = measured;
  const telemetry = charger === null ? null : state.presence.of(charger.id).telemetry;
  const register = telemetry?.energyWh === undefined ? "sessionWh" : "energyWh";
  const fromWh = telemetry?.[register];
  if (charger === null) return { kind: "at", at: departure.at };
  if (remainingWh === null || fromWh === undefined)
    return { kind: "unplugged", charger: charger.id, vehicle: vehicle.id };
  const meter = { charger: charger.id, register, fromWh, deliveredWh: 0 } as const;
  return { kind: "energy", wh: Math.ceil(remainingWh), meter };
}
