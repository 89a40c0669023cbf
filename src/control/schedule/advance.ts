import { auditRow } from "../../domain/audit.ts";
import type { Dispatch } from "./expand.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import {
  between,
  type ChargerId,
  type Instant,
  iso,
  later,
  type Millis,
  type VehicleId,
} from "../../domain/units.ts";
import { inSteps, type ResumableTask, runToEnd } from "../../platform/cooperative.ts";

export interface Advanced {
  readonly affectedChargers: ReadonlySet<ChargerId>;
  readonly changes: readonly Change[];
  /** Rows of windows that were missed. They are written with the next mark (`EvaluatedMark`), so that each comes once. */
  readonly missed: readonly Change[];
  /** Delay between each start and its evaluation. */
  readonly late: readonly Millis[];
  /** False: call again soon, for the rest. */
  readonly isComplete: boolean;
  /** True: a window began or ended. */
  readonly hasBoundaries: boolean;
}

/** Vehicles whose boundaries are handled in one turn of the event loop. */
const PART = 500;

/** Changes by time alone: the chargers to evaluate, and the windows that passed without an evaluation. */
export function advance(state: ControlState, now: Instant, most = PART): Advanced {
  const before = state.schedule.evaluatedAt ?? now;
  const { affectedVehicles: vehicles, started, ended, isComplete } = state.agenda.advance(now, most);
  const affectedChargers = new Set(state.woken(now));
  for (const vehicle of vehicles) {
    for (const charger of state.occupancy.chargersOf(vehicle)) affectedChargers.add(charger);
  }
  const late = started
    .filter(({ from, until }) => before < from && now < until)
    .map(({ from }) => between(from, now));
  // The rest counts as late, or as missed, from the same moment on.
  if (isComplete) state.schedule.evaluatedTo(now);
  // The daemon was down during the window, the clock jumped over it, or new starts were not allowed.
  const unseen = ended.filter(
    (dispatch) =>
      dispatch.cutAt === null &&
      !state.schedule.isEvaluated(dispatch) &&
      !state.schedule.isUnplugged(dispatch),
  );
  const missed = unseen.flatMap((dispatch) => missedRow(state, dispatch, before, now));
  const changes = reportUnplugged(state, new Set([...vehicles, ...state.schedule.unreported]), now);
  return { affectedChargers, late, changes, missed, isComplete, hasBoundaries: vehicles.size > 0 };
}

/**
 * Marks the dispatches of an evaluated charger: they are not missed.
 * Exception: dispatches that may not start yet, as the partner was not polled or the clock is doubted.
 */
export function markEvaluated(state: ControlState, charger: ChargerId, now: Instant): void {
  const occupant = state.occupancy.at(charger);
  if (occupant.kind !== "vehicle") return;
  const last = state.commands.get(charger)?.command;
  const running = last === undefined || last.desired.kind === "release" ? null : last.event;
  const startsAllowed = state.barTo("start", charger) === null;
  state.agenda.mark("evaluated", occupant.vehicle, now, (dispatch) => {
    if (!startsAllowed && dispatch.event.id !== running) return false;
    state.schedule.markEvaluated(dispatch);
    return true;
  });
}

/**
 * A targeted vehicle that is at no charger is an outcome, not an error. It is recorded once for each
 * dispatch.
 */
const reportUnplugged = (
  state: ControlState,
  vehicles: Iterable<VehicleId>,
  now: Instant,
): readonly Change[] => runToEnd(reportingUnplugged(state, vehicles, now));

/** As `reportUnplugged`, for all vehicles of a site or of an event. */
export function* reportingUnplugged(
  state: ControlState,
  vehicles: Iterable<VehicleId>,
  now: Instant,
): ResumableTask<readonly Change[]> {
  const changes: Change[] = [];
  yield* inSteps(vehicles, (vehicle) => {
    if (state.occupancy.where(vehicle) !== null) return;
    state.agenda.mark("unplugged", vehicle, now, (dispatch) => {
      if (!state.schedule.markUnplugged(dispatch)) return true;
      const name = state.vehicles.get(vehicle)?.name ?? vehicle;
      changes.push(
        row(dispatch, now, `${name} is at no charger: event ${dispatch.event.id} cannot be applied to it`),
      );
      return true;
    });
  });
  return changes;
}

/**
 * A missed window starts no earlier than the receipt of its revision, nor than a withdrawal before that.
 * An event that was withdrawn and came back may have been acted on before.
 */
function missedRow(
  state: ControlState,
  dispatch: Dispatch,
  before: Instant,
  now: Instant,
): readonly Change[] {
  const known = state.known.get(dispatch.event.id);
  const goneUntil = known?.kind === "live" ? known.goneUntil : undefined;
  const from = later(later(dispatch.from, known?.receivedAt ?? dispatch.from), goneUntil ?? dispatch.from);
  if (from >= dispatch.until) return [];
  const why =
    dispatch.from > before
      ? "the daemon did not evaluate in that time"
      : "the event arrived too late, or new starts were not allowed in that time";
  const name = state.vehicles.get(dispatch.vehicle)?.name ?? dispatch.vehicle;
  const span = `${state.wallClock(from)} to ${state.wallClock(dispatch.until)}`;
  return [row({ ...dispatch, from }, now, `${name} missed event ${dispatch.event.id}, ${span}: ${why}`)];
}

const row = (dispatch: Dispatch, at: Instant, words: string): Change =>
  auditRow("missed", at, words, {
    vehicle: dispatch.vehicle,
    event: dispatch.event.id,
    facts: { from: iso(dispatch.from), until: iso(dispatch.until), offsetMs: dispatch.offset },
  });
