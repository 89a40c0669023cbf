import { type Pace, siteRise } from "./pace.ts";
import type { Step } from "./reconcile.ts";
import type { Verdict } from "./verdict.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import { HOUR } from "../send/sendQueue.ts";
import { type ChargerId, type Instant, instant, later } from "../../domain/units.ts";

/** Earliest time of an increase, by the charger's writes and by the chargers before it in the ramp. */
export const paceOf = (
  { writes, ramp }: ControlState,
  { id, writesPerHour }: Charger,
  now: Instant,
): Pace => ({
  writableAt: writesPerHour === null ? now : writes.roomAt(id, writesPerHour, now),
  rampAt: ramp?.nextSlot(id, now) ?? now,
});

/** Restores the writes of the last hour at a start, so that a restart does not allow them twice. */
export function recallWrites(
  { chargers, writes }: ControlState,
  recorded: (charger: ChargerId, since: Instant) => readonly Instant[],
  now: Instant,
): void {
  const since = instant(now - HOUR);
  for (const { id, writesPerHour } of chargers.values())
    if (writesPerHour !== null) writes.recall(id, recorded(id, since));
}

/**
 * Records a deferral of the charger and its place in the ramp. Call it before the decision replaces the last
 * command. Returns the rows to store.
 */
export function recordDeferral(
  state: ControlState,
  verdict: Verdict,
  step: Step,
  now: Instant,
): readonly Change[] {
  const { id } = verdict.charger;
  const deferral = step.kind === "nothing" ? null : step.deferral;
  if (deferral === null) state.endDeferral(id);
  else state.defer(id, deferral);
  const { ramp } = state;
  if (ramp === null) return NO_CHANGES;
  const before = state.commands.get(id)?.command.desired;
  const rise = before === undefined ? 0 : siteRise(before, verdict.desired, verdict, ramp.unit);
  if (deferral?.by === "release ramp") {
    ramp.wait(id, rise);
    return noteWait(state, id, now);
  }
  if (step.kind === "decide" && before !== undefined)
    ramp.passed(siteRise(before, step.decision.desired, verdict, ramp.unit), now);
  leaveRampOrder(state, id, now);
  return step.kind === "decide" ? NO_CHANGES : noteWait(state, id, null);
}

const NO_CHANGES: readonly Change[] = [];

/** A level that waits is decided anew, as its window ends. A pause is not: its wait is stored. Null: it does not wait. */
function noteWait({ commands }: ControlState, id: ChargerId, since: Instant | null): readonly Change[] {
  const record = commands.get(id);
  if (record?.command.desired.kind !== "pause") return NO_CHANGES;
  const { waitsSince, ...rest } = record;
  if ((waitsSince === undefined) === (since === null)) return NO_CHANGES;
  const noted = since === null ? rest : { ...rest, waitsSince: since };
  commands.record(noted);
  return [{ kind: "command", record: noted }];
}

/** This charger has nothing to wait for: the next one in the ramp may go on. */
export function endDeferral(state: ControlState, id: ChargerId, now: Instant): void {
  state.endDeferral(id);
  leaveRampOrder(state, id, now);
}

function leaveRampOrder(state: ControlState, id: ChargerId, now: Instant): void {
  const { ramp } = state;
  const next = ramp?.leave(id) ?? null;
  if (ramp !== null && next !== null) state.wake(next, later(ramp.nextSlot(next, now), now));
}

/** Chargers with a deferral first, the longest waiting at the head. After a restart this restores their order. */
export function inRampOrder(
  { ramp, commands }: ControlState,
  waiting: Map<ChargerId, boolean>,
): Map<ChargerId, boolean> {
  if (ramp === null) return waiting;
  const held: (readonly [since: number, charger: ChargerId])[] = [];
  for (const id of waiting.keys()) {
    const record = commands.get(id);
    const since = record?.command.cause === "held" ? record.command.decidedAt : record?.waitsSince;
    if (since !== undefined) held.push([since, id]);
  }
  if (held.length === 0) return waiting;
  const longestFirst = held.toSorted(([a], [b]) => a - b).map(([, id]) => id);
  return new Map([...longestFirst.map((id) => [id, waiting.get(id) === true] as const), ...waiting]);
}
