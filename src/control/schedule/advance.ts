import { auditRow } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import {
  between,
  type ChargerId,
  type EventId,
  type Instant,
  iso,
  later,
  type Millis,
  type VehicleId,
} from "../../domain/units.ts";
import { type ClockReading, jumpBetween } from "../../platform/clock.ts";
import { inSteps, type ResumableTask, runToEnd } from "../../platform/cooperative.ts";
import type { EvaluatedMark } from "../decide/evaluationQueue.ts";
import { advanceHolds } from "../holds/lifecycle.ts";
import { advanceMode } from "../holds/observePeriod.ts";
import { NONE_READ, type WholeEvents } from "../ingest/knownEvents.ts";
import { condense } from "../ingest/summary.ts";
import { endOverdueReboots } from "../observe/recordRestarts.ts";
import { recordSilences } from "../observe/recordSilence.ts";
import { type ControlPorts } from "../ports.ts";
import { clockStepRow, onClockMovedBack } from "../recovery.ts";
import { type Reevaluation, reevaluationsOf } from "../stage.ts";
import type { ControlState } from "../state.ts";
import type { Dispatch } from "./expand.ts";

type PassagePorts = Pick<ControlPorts, "now" | "monotonic" | "write" | "warn" | "started" | "isLinked">;

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

/**
 * The passage of time, as a stage of control: boundaries of dispatches, ends of holds and of an observe period,
 * silences, and steps of the clock.
 */
export class PassageOfTime {
  readonly #state: ControlState;
  readonly #ports: PassagePorts;
  readonly #mark: EvaluatedMark;
  readonly #modeChanged: () => void;
  /** The clocks at the last advance. Their difference shows a step. */
  #clock: ClockReading;
  /** Events that are open again since the clock was set back, for the stages that run. */
  #reopened: WholeEvents = NONE_READ;

  /** `modeChanged`: called where time ended an observe period. */
  constructor(state: ControlState, ports: PassagePorts, mark: EvaluatedMark, modeChanged: () => void) {
    this.#state = state;
    this.#ports = ports;
    this.#mark = mark;
    this.#modeChanged = modeChanged;
    this.#clock = this.#readClock();
    // A charger whose occupant comes from a stored command must send messages. A dead one keeps no claim.
    for (const charger of state.occupancy.recalled())
      state.silence.noteMessage(charger, this.#clock.monotonic);
  }

  /** The clock was set since the last advance. */
  hasStepped(): boolean {
    return jumpBetween(this.#clock, this.#readClock()) !== 0;
  }

  /** Runs a step. After a step back of the clock, the events that are open again are read first. */
  withReopened<T>(step: () => T | Promise<T>): T | Promise<T> {
    const { known } = this.#state;
    const isBack = (): boolean => jumpBetween(this.#clock, this.#readClock()) < 0;
    return known.withWhole(
      () => (isBack() ? known.openAgain(this.#ports.now()) : []),
      (read) => {
        this.#reopened = read;
        return step();
      },
    );
  }

  /** Handles the time since the last call. After a clock step every charger is affected. */
  advance(): readonly Reevaluation[] {
    const [state, ports, mark] = [this.#state, this.#ports, this.#mark];
    const before = this.#clock;
    this.#clock = this.#readClock();
    const { wall, monotonic } = this.#clock;
    const jump = jumpBetween(before, this.#clock);
    const { evaluatedAt } = state.schedule;
    const changed = jump < 0 ? state.schedule.replan(wall, this.#reopened) : [];
    if (jump < 0) onClockMovedBack(state, wall);
    ports.write(advanceHolds(state, jump, wall));
    const mode = advanceMode(state, jump, wall);
    if (mode !== null) {
      ports.write(mode.changes);
      this.#modeChanged();
    }
    ports.write(changed.map((known) => ({ kind: "event", known })));
    // After a clock step every charger is evaluated anyway, at once.
    const most = jump === 0 ? undefined : Infinity;
    const { affectedChargers: affected, changes, missed, late, ...step } = advance(state, wall, most);
    // Boundaries by a clock that was ahead do not show that the clock is right now.
    mark.hasBoundaries = step.hasBoundaries || (mark.hasBoundaries && jump >= 0);
    // An event stays whole until all its ends are recorded.
    if (step.isComplete) void condense(state, wall);
    ports.write(changes);
    mark.add(missed);
    // Windows that began by then are on record, so the next start does not report them as missed.
    if (jump < 0 && evaluatedAt !== null) ports.write(mark.write(evaluatedAt));
    const silences = recordSilences(state, monotonic, wall, ports.isLinked);
    ports.write([...silences.changes, ...endOverdueReboots(state, wall)]);
    for (const message of silences.warnings) ports.warn(message);
    const byMode = mode?.reevaluations ?? [];
    if (jump !== 0) {
      ports.write([clockStepRow(jump, wall)]);
      return [...reevaluationsOf(state.chargers.keys()), ...byMode];
    }
    for (const lateBy of late) ports.started(lateBy);
    return [...reevaluationsOf([...affected, ...silences.affectedChargers]), ...byMode];
  }

  #readClock(): ClockReading {
    return { wall: this.#ports.now(), monotonic: this.#ports.monotonic() };
  }
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
 * Exception: dispatches that may not start yet, as the partner was not polled or the clock is doubted. A hold, or the
 * event that goes on, overrules them all the same.
 */
export function markEvaluated(state: ControlState, charger: ChargerId, now: Instant): void {
  const occupant = state.occupancy.at(charger);
  if (occupant.kind !== "vehicle") return;
  const last = state.commands.get(charger)?.command;
  const running = last === undefined || last.desired.kind === "release" ? null : last.event;
  const isDecided = state.barTo("start", charger) === null || isOverruledBy(running, state, charger, now);
  state.agenda.mark("evaluated", occupant.vehicle, now, (dispatch) => {
    if (!isDecided && dispatch.event.id !== running) return false;
    state.schedule.markEvaluated(dispatch);
    return true;
  });
}

/** True: whatever is in force at a charger loses to a hold, or to the event that its last command is for. */
function isOverruledBy(
  running: EventId | null,
  state: ControlState,
  charger: ChargerId,
  now: Instant,
): boolean {
  const outlet = state.chargers.get(charger);
  if (outlet === undefined) return false;
  const { winner, hold } = state.verdictOn(outlet, now);
  return winner === null ? hold !== null : winner.event.id === running;
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
      if (!state.schedule.markUnplugged(dispatch, state.sendQueue.nextEvaluation)) return true;
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
  return [row(dispatch, now, `${name} missed event ${dispatch.event.id}, ${span}: ${why}`, from)];
}

const row = (dispatch: Dispatch, at: Instant, message: string, from = dispatch.from): Change =>
  auditRow("missed", at, message, {
    vehicle: dispatch.vehicle,
    event: dispatch.event.id,
    facts: { from: iso(from), until: iso(dispatch.until), offsetMs: dispatch.offset },
  });
