import { type Pace, siteRise } from "./pace.ts";
import type { Step } from "./reconcile.ts";
import type { Verdict } from "./verdict.ts";
import type { ControlState } from "../state.ts";
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
 * command.
 */
export function recordDeferral(depot: ControlState, verdict: Verdict, step: Step, now: Instant): void {
  const { id } = verdict.charger;
  const deferral = step.kind === "nothing" ? null : step.deferral;
  if (deferral === null) depot.endDeferral(id);
  else depot.defer(id, deferral);
  const { ramp } = depot;
  if (ramp === null) return;
  const before = depot.commands.get(id)?.command.desired;
  const rise = before === undefined ? 0 : siteRise(before, verdict.desired, verdict, ramp.unit);
  if (deferral?.by === "release ramp") {
    ramp.wait(id, rise);
    return;
  }
  if (step.kind === "decide" && before !== undefined)
    ramp.passed(siteRise(before, step.decision.desired, verdict, ramp.unit), now);
  leaveRampOrder(depot, id, now);
}

/** This charger has nothing to wait for: the next one in the ramp may go on. */
export function endDeferral(depot: ControlState, id: ChargerId, now: Instant): void {
  depot.endDeferral(id);
  leaveRampOrder(depot, id, now);
}

function leaveRampOrder(depot: ControlState, id: ChargerId, now: Instant): void {
  const { ramp } = depot;
  const next = ramp?.leave(id) ?? null;
  if (ramp !== null && next !== null) depot.wake(next, later(ramp.nextSlot(next, now), now));
}

/** Chargers with a deferral first, the longest waiting at the head. After a restart this restores their order. */
export function inRampOrder(
  { ramp, commands }: ControlState,
  waiting: Map<ChargerId, boolean>,
): Map<ChargerId, boolean> {
  if (ramp === null) return waiting;
  const held: (readonly [since: number, charger: ChargerId])[] = [];
  for (const id of waiting.keys()) {
    const command = commands.get(id)?.command;
    if (command?.cause === "held") held.push([command.decidedAt, id]);
  }
  if (held.length === 0) return waiting;
  const longestFirst = held.toSorted(([a], [b]) => a - b).map(([, id]) => id);
  return new Map([...longestFirst.map((id) => [id, waiting.get(id) === true] as const), ...waiting]);
}
