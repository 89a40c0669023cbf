import { inWatts } from "../control/decide/ahead.ts";
import { estimatedCosts, formatCost, noteCosts } from "../control/decide/holdCost.ts";
import { limit } from "../control/decide/limits.ts";
import { type Dispatch, expandAfter } from "../control/schedule/expand.ts";
import type { RequestedChange } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import { type AuditRow, factOf, type Json, textOf } from "../domain/audit.ts";
import type { Hold, HoldCost, MeasuredCost } from "../domain/hold.ts";
import type { Store } from "../domain/store.ts";
import {
  after,
  earlier,
  type EventId,
  type Instant,
  later,
  instant,
  minutes,
  type VehicleId,
  type Window,
} from "../domain/units.ts";
import { runCooperatively, yieldToEventLoop } from "../platform/cooperative.ts";
import { estimatedEnergy } from "../reporting/energy.ts";
import { evidenceOf, type FillContext } from "../reporting/evidence.ts";
import { pagesSince } from "./recordPages.ts";

/** Time after the end of a hold in which the last readings arrive. */
const SETTLED = minutes(2);
const HOUR_MS = 3_600_000;

interface CostParts {
  readonly state: ControlState;
  readonly store: Pick<Store, "audit" | "head" | "readings">;
  readonly context: Pick<FillContext, "settings" | "chargers">;
  /** Hands a change to control. Resolves after its commit. */
  readonly request: (change: RequestedChange) => Promise<unknown>;
  readonly now: () => Instant;
  readonly monotonic: () => number;
}

/** Estimates the costs of a hold and stores them. A hold of a large site takes seconds, with turns in between. */
export async function storeEstimate(
  { state, request, now, monotonic }: Omit<CostParts, "store" | "context">,
  hold: Hold,
): Promise<void> {
  const costs = await runCooperatively(estimatedCosts(state, hold, now()), monotonic);
  await request((state, at) => noteCosts(state, hold.id, costs, "estimated", at));
}

/**
 * Adds the costs that are due: the estimate of holds that no request opened, and the measured part of those that ended.
 * Only one run is under way at a time.
 */
export function holdCosts(parts: CostParts): () => Promise<void> {
  const { state, request, now } = parts;
  let running: Promise<void> | null = null;
  const run = async (): Promise<void> => {
    for (const hold of state.holds.all()) {
      const { id, ended, costs, isMeasured } = hold;
      if (costs === undefined && ended === null) await storeEstimate(parts, hold);
      if (ended === null || isMeasured === true || now() < after(ended.at, SETTLED)) continue;
      const all = await measuredCosts(parts, hold, costs ?? [], ended.at);
      await request((state, at) => noteCosts(state, id, all, "measured", at));
    }
  };
  return () => (running ??= run().finally(() => (running = null)));
}

/** A vehicle that a hold freed from an event, from then on. */
type Freed = Pick<AuditRow, "at" | "charger" | "vehicle" | "event">;

/** Costs of the events that a hold was expected to set aside, and of those that it did. */
async function measuredCosts(
  parts: CostParts,
  { id, since }: Hold,
  estimated: readonly HoldCost[],
  endedAt: Instant,
): Promise<readonly HoldCost[]> {
  const freed: Freed[] = [];
  for await (const rows of pagesSince(parts.store, "operator", since))
    for (const { facts, at, charger, vehicle, event } of rows)
      if (factOf(facts, "effect") === true && textOf(facts, "hold") === id)
        freed.push({ at, charger, vehicle, event });
  const byEvent = Map.groupBy(freed, ({ event }) => event);
  const costs: HoldCost[] = [];
  for (const event of new Set([...estimated.map((cost) => cost.event), ...byEvent.keys()])) {
    if (event === null) continue;
    const estimatedWh = estimated.find((cost) => cost.event === event)?.estimatedWh ?? null;
    costs.push({
      event,
      estimatedWh,
      measured: await measured(parts, byEvent.get(event) ?? [], event, endedAt),
    });
  }
  return costs;
}

/** Measures how much more than the event allows was drawn, from each moment at which the hold set the event aside. */
async function measured(
  parts: CostParts,
  freed: readonly Freed[],
  event: EventId,
  endedAt: Instant,
): Promise<MeasuredCost> {
  const { state, monotonic } = parts;
  const known = await state.known.readWhole(event);
  const expansion =
    known === undefined || known === null
      ? null
      : await runCooperatively(expandAfter(null, known, state.expansion), monotonic);
  const dispatches = Map.groupBy<VehicleId, Dispatch>(expansion?.dispatches ?? [], ({ vehicle }) => vehicle);
  let wh: number | null = null;
  let unknown = 0;
  const byVehicle = Map.groupBy(freed, ({ vehicle }) => vehicle);
  // SQLite answers without a turn of the event loop: 20,000 vehicles would stop everything else.
  const pause = yieldToEventLoop(monotonic);
  for (const [vehicle, rows] of byVehicle) {
    const own = vehicle === null ? [] : (dispatches.get(vehicle) ?? []);
    const taken = await takenBy(parts, rows, own, endedAt);
    if (taken === null) unknown += 1;
    else wh = (wh ?? 0) + taken;
    await pause();
  }
  // A hold that freed no vehicle took nothing.
  return {
    wh: byVehicle.size === 0 ? 0 : wh === null ? null : Math.round(wh),
    vehicles: byVehicle.size,
    unknown,
  };
}

/** Energy above the level of the event that one vehicle drew, in Wh. Null: unknown. */
async function takenBy(
  parts: CostParts,
  rows: readonly Freed[],
  dispatches: readonly Dispatch[],
  endedAt: Instant,
): Promise<number | null> {
  if (dispatches.length === 0) return null;
  let sum = 0;
  for (const [index, row] of rows.entries()) {
    // The next row goes on: the vehicle has moved, or the program has started again.
    const end = earlier(endedAt, rows[index + 1]?.at ?? endedAt);
    for (const dispatch of dispatches) {
      const window = { from: later(row.at, dispatch.from), until: earlier(end, dispatch.until) };
      if (window.from >= window.until) continue;
      const taken = await takenWithin(parts, row, dispatch, window);
      if (taken === null) return null;
      sum += taken;
    }
  }
  return sum;
}

async function takenWithin(
  { state, store, context }: CostParts,
  { charger: id, vehicle: vehicleId }: Freed,
  { setpoint }: Dispatch,
  window: Window,
): Promise<number | null> {
  const charger = id === null ? undefined : state.chargers.get(id);
  const vehicle = vehicleId === null ? undefined : state.vehicles.get(vehicleId);
  if (charger === undefined || vehicle === undefined) return null;
  const { maxGap } = context.settings;
  const readings = await store.readings(
    [charger.id],
    instant(window.from - maxGap),
    after(window.until, maxGap),
  );
  const evidence = evidenceOf({ vehicle: vehicle.id, readings, planned: [], outages: [] }, context);
  const drawn = estimatedEnergy(evidence.energy, evidence.power.steps, window, maxGap);
  if (drawn.value === null || drawn.quality === "MISSING") return null;
  const allowedW = inWatts(limit(setpoint, charger, vehicle).desired, charger, vehicle, Infinity);
  return Math.max(0, drawn.value - (allowedW * (window.until - window.from)) / HOUR_MS);
}

/** The costs of a hold as the API shows them. Null: not computed yet. */
export const costViews = ({ costs }: Pick<Hold, "costs">): Json =>
  costs?.map((cost) => ({
    event: cost.event,
    sentence: formatCost(cost),
    estimatedWh: cost.estimatedWh,
    measured: cost.measured === null ? null : { ...cost.measured },
  })) ?? null;
