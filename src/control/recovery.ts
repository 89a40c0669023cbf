import { auditRow } from "../domain/audit.ts";
import type { Change, StoredState, Scope, StoredScope } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import { commandId, type CommandRecord, leaseOf } from "../domain/command.ts";
import type { KnownEvent } from "../domain/event.ts";
import {
  type Millis,
  type Instant,
  iso,
  instant,
  type ChargerId,
  seconds,
  type VehicleId,
} from "../domain/units.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import { forgetBindings, rollBackBindings } from "./observe/bindings.ts";
import { forgotten, MOST_RAW, setAside } from "./ingest/quarantine.ts";
import { expand } from "./schedule/expand.ts";
import { clockMovedBack, loadedAt, rampRestarted, withFailuresOf, withOutcomeOf } from "./send/commands.ts";
import type { ControlState } from "./state.ts";

/** Interval of evaluations while commits fail: soon, but without a busy loop. */
const COMMIT_RETRY = seconds(5);

/** The same moment for all chargers: while a disk refuses, each moment costs a failed commit. 2.5 s to 7.5 s from now. */
const nextRetry = (now: Instant): Instant => instant(Math.ceil(now / COMMIT_RETRY + 0.5) * COMMIT_RETRY);

/**
 * Loads the stored state. Returns the rows to write.
 * An event that triggers a bug, after an upgrade for example, must not end the process at every start.
 * The event is quarantined and forgotten, so that the partner's next list delivers it again.
 */
export function* restoringState(
  state: ControlState,
  stored: StoredState,
  now: Instant,
): ResumableTask<readonly Change[]> {
  const planned = yield* plannable(state, stored, now);
  yield* restartingRampTimes(state, now);
  const edited = stored.edited.map(({ id, raw }) => ({
    kind: "rejected" as const,
    id,
    path: "",
    reason: "another program edited its stored copy: it is not acted on, and the partner is asked for it",
    raw: raw.slice(0, MOST_RAW),
  }));
  const unbound = forgetBindings(state, stored.bindings, now);
  return [...planned, ...unbound, ...forgotten(edited, { at: now, source: "state" })];
}

/** A charger that went back to its own limit while no daemon ran gets the ramp time once more. */
function* restartingRampTimes(state: ControlState, now: Instant): ResumableTask<void> {
  const { refresh, verdict } = state.settings;
  yield* inSteps(state.commands.values(), (record) => {
    const charger = state.chargers.get(record.command.charger);
    if (charger === undefined || record.sentAt === null) return;
    if (now - record.sentAt >= heldFor(charger, leaseOf(refresh)))
      state.commands.record(rampRestarted(record, verdict.ramp, now));
  });
}

/** Time for which a charger stays at its setpoint without a message from us, ms. */
function heldFor({ whenSilent }: Charger, lease: Millis): number {
  switch (whenSilent.kind) {
    case "lease":
      return lease;
    case "timeout":
      return whenSilent.after;
    case "holds":
      return Infinity;
  }
}

/** Restores the events that can be planned. Returns the rows to write for the others. */
function* plannable(
  state: ControlState,
  stored: StoredState,
  now: Instant,
): ResumableTask<readonly Change[]> {
  try {
    const excess = yield* state.restoring(stored, now);
    return forgotten(excess.map(beyondMemory), { at: now, source: "state" });
  } catch (error) {
    const broken = new Map(
      stored.events.flatMap((known) => {
        const fault = known.kind === "over" ? null : faultOf(known, state);
        return fault === null ? [] : [[known, fault] as const];
      }),
    );
    if (broken.size === 0) throw error;
    const sound = stored.events.filter((known) => !broken.has(known));
    const excess = (yield* state.restoring({ ...stored, events: sound }, now)).map(beyondMemory);
    const rejected = [...broken].map(([known, reason]) =>
      setAside(known.id, known, `a bug: this program cannot plan it (${reason})`),
    );
    return forgotten([...excess, ...rejected], { at: now, source: "state" });
  }
}

const beyondMemory = (known: KnownEvent) =>
  setAside(known.id, known, "its vehicles and those of the other events do not fit in memory", "targets");

function faultOf(known: KnownEvent, { expansion }: ControlState): string | null {
  try {
    expand(known, expansion);
    return null;
  } catch (error) {
    return String(error);
  }
}

/** The last publish to a charger. Needed only where its outcome could not be recorded. */
export interface LastSent {
  readonly record: CommandRecord;
  /** The row of this command's first publish, until it is stored. */
  rows: readonly Change[];
}

/**
 * Nothing of a failed commit was stored, so its scope is loaded from the store again.
 * `sent`: refreshes are counted in memory only, and must not all fall due at once.
 * A publish that went out keeps its outcome. A charger without refreshes would wait for it without end.
 * Returns the rows that the record lacks: of those publishes, and of bindings that ended.
 */
export function recoverAfterFailedCommit(
  state: ControlState,
  scope: Scope,
  stored: StoredScope,
  sent: ReadonlyMap<ChargerId, LastSent>,
  now: Instant,
): readonly Change[] {
  const before = new Map([...scope.chargers].map((charger) => [charger, state.commands.get(charger)]));
  const vehicles = rollBack(state, scope, stored, now);
  const lacking = [...rollBackBindings(state, scope.chargers, stored.bindings, now)];
  for (const charger of scope.chargers) {
    const found = state.commands.get(charger);
    if (found === undefined) continue;
    const live = before.get(charger);
    const isSame = live !== undefined && commandId(live.command) === commandId(found.command);
    const record = isSame ? withFailuresOf(found, live) : found;
    state.commands.record(record);
    const lastSent = sent.get(charger);
    if (lastSent === undefined || commandId(lastSent.record.command) !== commandId(record.command)) continue;
    state.commands.record(loadedAt(withOutcomeOf(record, lastSent.record), state.settings.verdict.ramp, now));
    if (record.progress === "planned") lacking.push(...lastSent.rows);
  }
  const chargers = [...vehicles].flatMap((vehicle) => state.occupancy.chargersOf(vehicle));
  retryLater(state, [...scope.chargers, ...chargers], now);
  return lacking;
}

/** Schedules another evaluation of chargers whose evaluation was not stored. */
export function retryLater(state: ControlState, chargers: Iterable<ChargerId>, now: Instant): void {
  for (const charger of chargers) state.wake(charger, nextRetry(now));
}

/**
 * After the clock was set back: facts in memory dated later than now count as of now.
 * Otherwise they would be newer than any message for as long as the clock was ahead.
 */
export function onClockMovedBack(state: ControlState, now: Instant): void {
  state.occupancy.onClockMovedBack(now);
  state.ramp?.onClockMovedBack(now);
  state.presence.onClockMovedBack(now);
  state.reboots.onClockMovedBack(now);
  const { ramp } = state.settings.verdict;
  for (const record of state.commands.values()) state.commands.record(clockMovedBack(record, ramp, now));
}

/**
 * Restores the stored state of the events and chargers of a failed commit. The rest stays as it is.
 * Returns the vehicles with a dispatch in force now, before or after.
 */
export function rollBack(
  state: ControlState,
  scope: Scope,
  stored: StoredScope,
  now: Instant,
): ReadonlySet<VehicleId> {
  state.rejections.clear();
  state.schedule.retractUnreported();
  const events = new Map(stored.events.map((known) => [known.id, known]));
  const affected = new Set<VehicleId>();
  // A window that began while nothing may start was not always evaluated. The next evaluation marks those that are.
  const mayStart = state.barTo("start", null) === null;
  for (const id of scope.events)
    for (const vehicle of state.schedule.rollBack(id, events.get(id), mayStart, now)) affected.add(vehicle);
  for (const charger of scope.chargers) {
    state.commands.forget(charger);
    state.holds.noteEffect(charger, null);
    state.sendQueue.endCommitWait(charger);
  }
  if (scope.mode) state.mode.rollBack(stored.observePeriod, now);
  state.putCommands(stored, now);
  for (const id of scope.holds) state.holds.delete(id);
  for (const hold of stored.holds) state.holds.put(hold, nextRetry(now));
  state.assertAgain(scope.chargers);
  state.ramp?.recall(state.commands.values(), state.chargers, now);
  return affected;
}

/** Row about a step of the clock of this machine. `step`: ms, negative if it was set back. */
export function clockStepRow(step: Millis, at: Instant): Change {
  // The monotonic clock, from which the step is measured, has fractions of a millisecond.
  const jump = Math.round(step);
  return auditRow(
    "daemon",
    at,
    `the clock of this machine was set ${jump > 0 ? "forward" : "back"} by ${Math.abs(jump) / 1000} s: every charger is evaluated again`,
    {
      facts: {
        jumpMs: jump,
        outage: "clock",
        since: iso(instant(Math.min(at, at - jump))),
        over: true,
      },
    },
  );
}
