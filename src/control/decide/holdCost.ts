import { auditRow } from "../../domain/audit.ts";
import { formatEnergy } from "../../domain/departure.ts";
import { endOf, type Hold, type HoldCost } from "../../domain/hold.ts";
import { earlier, type EventId, type Instant, later } from "../../domain/units.ts";
import { inSteps, type ResumableTask } from "../../platform/cooperative.ts";
import { chargersUnder } from "../holds/lifecycle.ts";
import { NO_CHANGES, type StageResult } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { allowedAhead, type AllowedStretch } from "./ahead.ts";

const HOUR_MS = 3_600_000;

/**
 * Energy that a hold takes from each event that runs or begins in its time, by the plan: what is allowed under it, above
 * what the event allows. The vehicles are taken to stay, and to draw what is allowed. The hold may be open or not.
 */
export function* estimatedCosts(
  state: ControlState,
  hold: Hold,
  now: Instant,
): ResumableTask<readonly HoldCost[]> {
  const taken = new Map<EventId, number>();
  const window = { from: now, until: endOf(hold) };
  yield* inSteps(chargersUnder(state, hold.scope), (id) => {
    const charger = state.chargers.get(id);
    const occupant = state.occupancy.at(id);
    const vehicle = occupant.kind === "vehicle" ? state.vehicles.get(occupant.vehicle) : undefined;
    if (charger === undefined || vehicle === undefined || state.agenda.of(vehicle.id).length === 0) return;
    const ahead = (added: Hold | null): readonly AllowedStretch[] => [
      ...allowedAhead(state, charger, vehicle, window, { ignored: hold.id, added }),
    ];
    for (const [event, wh] of takenBy(hold, ahead(hold), ahead(null)))
      if (wh > 0) taken.set(event, (taken.get(event) ?? 0) + wh);
  });
  return [...taken].map(([event, wh]) => ({
    event,
    estimatedWh: Number.isFinite(wh) ? Math.round(wh) : null,
    measured: null,
  }));
}

/** Both lists cover the same time, in order. */
function* takenBy(
  { id }: Hold,
  held: readonly AllowedStretch[],
  free: readonly AllowedStretch[],
): Generator<readonly [EventId, number]> {
  for (const under of held) {
    if (under.hold?.id !== id) continue;
    for (const without of free) {
      const from = later(under.from, without.from);
      const until = earlier(under.until, without.until);
      if (without.event === null || from >= until || without.allowedW === Infinity) continue;
      yield [without.event, Math.max(0, under.allowedW - without.allowedW) * ((until - from) / HOUR_MS)];
    }
  }
}

/** Stores the costs of a hold, and records them on the events. `basis`: the part that is new. */
export function noteCosts(
  state: ControlState,
  id: Hold["id"],
  costs: readonly HoldCost[],
  basis: "estimated" | "measured",
  now: Instant,
): StageResult {
  const hold = state.holds.get(id);
  if (hold === undefined) return NO_CHANGES;
  const counted: Hold = { ...hold, costs, ...(basis === "measured" ? { isMeasured: true } : {}) };
  state.holds.put(counted, state.holds.retryAt(id));
  const rows = costs.map((cost) =>
    auditRow(
      "operator",
      now,
      `hold ${id} of ${hold.by} ${basis === "estimated" ? formatEstimate(cost) : formatMeasured(cost)}`,
      {
        event: cost.event,
        facts: {
          hold: id,
          cost: basis,
          estimatedWh: cost.estimatedWh,
          measuredWh: cost.measured?.wh ?? null,
        },
      },
    ),
  );
  return { changes: [{ kind: "hold", hold: counted }, ...rows], reevaluations: [] };
}

/** "takes 12.3 kWh from event EV-7731 (estimated)". */
const formatEstimate = ({ event, estimatedWh }: HoldCost): string =>
  estimatedWh === null
    ? `takes an unknown energy from event ${event}`
    : `takes ${formatEnergy(estimatedWh)} from event ${event} (estimated)`;

function formatMeasured({ event, measured }: HoldCost): string {
  if (measured === null || measured.wh === null)
    return `took an unknown energy from event ${event}: no readings`;
  const { wh, vehicles, unknown } = measured;
  const some = unknown === 0 ? "" : `, unknown for ${unknown} of ${vehicles} vehicles`;
  return `took ${formatEnergy(wh)} from event ${event} (measured${some})`;
}

/** The cost as people see it: measured where it is over, else estimated. */
export const formatCost = (cost: HoldCost): string =>
  cost.measured === null ? formatEstimate(cost) : formatMeasured(cost);
