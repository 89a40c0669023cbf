import type { Change } from "../../domain/changes.ts";
import { type ChargerId, type Instant, later } from "../../domain/units.ts";
import type { ControlState } from "../state.ts";
import { siteRise } from "./pace.ts";
import type { Step } from "./reconcile.ts";
import type { Verdict } from "./verdict.ts";

/*
 * Deferrals: an increase that has to wait for the writes of its charger or for its turn in the ramp of the site.
 * `pace.ts` has the rules.
 */

const NOTHING: readonly Change[] = [];

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
  if (ramp === null) return NOTHING;
  const before = state.commands.get(id)?.command.desired;
  const rise = before === undefined ? 0 : siteRise(before, verdict.desired, verdict, ramp.unit);
  if (deferral?.by === "release ramp") {
    ramp.wait(id, rise);
    return noteWait(state, id, now);
  }
  if (step.kind === "decide" && before !== undefined)
    ramp.passed(siteRise(before, step.decision.desired, verdict, ramp.unit), now);
  leaveRampOrder(state, id, now);
  return step.kind === "decide" ? NOTHING : noteWait(state, id, null);
}

/**
 * A level that waits is decided anew, as its window ends. A pause is not: its wait is stored. `since` null: it does not
 * wait.
 */
function noteWait({ commands }: ControlState, id: ChargerId, since: Instant | null): readonly Change[] {
  const record = commands.get(id);
  if (record?.command.desired.kind !== "pause") return NOTHING;
  const { waitsSince, ...rest } = record;
  if ((waitsSince === undefined) === (since === null)) return NOTHING;
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
