import { type AllowedStretch, commandedWatts } from "../control/decide/ahead.ts";
import { riseOf } from "../control/decide/ramp.ts";
import type { ControlState } from "../control/state.ts";
import type { Charger } from "../domain/charger.ts";
import type { CommandRecord } from "../domain/command.ts";
import { after, earlier, type Instant, later, type Millis, millis, minutes } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";

/** Increase that a limited charger is owed, in the unit of the ramp. */
function owedRise({ chargers, ramp }: ControlState, { command }: CommandRecord): number {
  const charger = chargers.get(command.charger);
  return ramp === null || charger === undefined || command.desired.kind === "release"
    ? 0
    : riseOf(command.desired, { kind: "release" }, charger, null, ramp.unit);
}

/** Increases that all limited chargers of the site are owed, in the unit of the ramp. 0: there is no ramp. */
export function* owedBySite(state: ControlState): ResumableTask<number> {
  let owed = 0;
  if (state.ramp === null) return owed;
  yield* inSteps(state.commands.values(), (record) => {
    owed += owedRise(state, record);
  });
  return owed;
}

/** Pace of a charger. `owed`: increases that all limited chargers of the site are owed. */
export function pacingOf(
  state: ControlState,
  charger: Charger,
  vehicle: Vehicle,
  owed: number,
  now: Instant,
): Pacing {
  const { releaseRamp } = state.settings;
  const record = state.commands.get(charger.id);
  const others = Math.max(0, owed - (record === undefined ? 0 : owedRise(state, record)));
  const decidedAt = record?.command.decidedAt ?? null;
  return {
    presentW: commandedWatts(state, charger, vehicle),
    deferredUntil: state.deferrals.get(charger.id)?.until ?? null,
    // A clock that was set back delays no increase.
    changedAt: decidedAt === null || decidedAt > now ? null : decidedAt,
    minInterval: charger.minInterval,
    minOff: charger.minOff,
    ramp: millis(releaseRamp === null ? 0 : Math.ceil((others / releaseRamp.perMinute) * minutes(1))),
  };
}

/** Delays of increases at one charger. */
export interface Pacing {
  /** Power that is allowed at the moment, in W. Null: nothing is commanded. */
  readonly presentW: number | null;
  /** An increase waits until then by what is decided. Null: it does not. */
  readonly deferredUntil: Instant | null;
  /** Time of the last command. Null: none. */
  readonly changedAt: Instant | null;
  /** Shortest time from one command to an increase. */
  readonly minInterval: Millis;
  /** Shortest pause. */
  readonly minOff: Millis;
  /** Wait of an increase for others in the ramp of the site. */
  readonly ramp: Millis;
}

/**
 * The plan with its increases as late as the pace of charger and site makes them. Reductions are at once. An increase at
 * the end of an event does not wait for the interval since its beginning, but for the others in the ramp.
 */
export function paced(stretches: readonly AllowedStretch[], pacing: Pacing): readonly AllowedStretch[] {
  const { deferredUntil, minInterval, minOff, ramp } = pacing;
  const found: AllowedStretch[] = [];
  let level = pacing.presentW ?? Infinity;
  let { changedAt } = pacing;
  let before: AllowedStretch | null = null;
  /** The charger waits since then. Null: it does not. */
  let waitsSince: Instant | null = null;
  for (const stretch of stretches) {
    const { from, until, allowedW } = stretch;
    if (allowedW <= level) {
      if (allowedW < level) changedAt = from;
      level = allowedW;
      waitsSince = null;
      found.push(stretch);
    } else {
      waitsSince ??= from;
      const isOver = before !== null && before.event !== null && before.event !== stretch.event;
      let start: Instant = after(waitsSince, ramp);
      if (before === null && deferredUntil !== null) start = later(start, deferredUntil);
      if (changedAt !== null && !isOver) start = later(start, after(changedAt, minInterval));
      if (changedAt !== null && level === 0) start = later(start, after(changedAt, minOff));
      const rises = earlier(later(start, from), until);
      if (rises > from) found.push({ ...stretch, until: rises, allowedW: level });
      if (rises < until) {
        found.push({ ...stretch, from: rises });
        level = allowedW;
        changedAt = rises;
        waitsSince = null;
      }
    }
    before = stretch;
  }
  return found;
}
