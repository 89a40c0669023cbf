import { formatLevel } from "../../domain/setpoint.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Command, CommandRecord } from "../../domain/command.ts";
import { isDrawing } from "./claims.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
import { outcomeRow } from "../send/outcome.ts";

/**
 * Chargers that lost their vehicle to another charger's claim, or to their own absence, keep their limit.
 * Each keeps it until it reports unplugged or draws nothing for a minute. The row is an alarm.
 */
export function keepLimits(state: ControlState, lost: Iterable<ChargerId>, now: Instant): readonly Change[] {
  const changes: Change[] = [];
  for (const id of lost) {
    const command = state.commands.get(id)?.command;
    const { telemetry } = state.presence.of(id);
    if (command === undefined || command.desired.kind === "release" || command.vehicle === null) continue;
    if (!state.occupancy.hasLost(id) || telemetry?.state === "unplugged") continue;
    const { vehicle, desired } = command;
    state.occupancy.kept.keep(id, vehicle, now);
    if (telemetry !== null) noteDraw(state, id, telemetry, now);
    state.feed.announce("charger", id);
    const where = state.occupancy.where(vehicle);
    const elsewhere =
      where === null ? `${vehicle} is not claimed any more` : `${vehicle} is reported at ${where}`;
    const message = `keeps ${formatLevel(desired)}: ${elsewhere}, but ${id} has not reported that it is unplugged`;
    changes.push(outcomeRow(command, now, message, { warning: "contradicted", alarm: true, where }));
  }
  return changes;
}

/** Records the draw of a charger that keeps a limit. During a pause, drawing nothing proves nothing. */
export function noteDraw(
  state: ControlState,
  id: ChargerId,
  telemetry: Parameters<typeof isDrawing>[0],
  now: Instant,
): void {
  const isPaused = state.commands.get(id)?.command.desired.kind === "pause";
  state.occupancy.kept.draws(id, isPaused ? true : isDrawing(telemetry), now);
  const idleAt = state.occupancy.kept.idleAt(id);
  if (idleAt !== null) state.wake(id, idleAt);
}

/**
 * Drops a kept limit once its charger drew nothing for a minute, or is not limited any more, but by a hold.
 * A release decided before the limit was last found comes from a clock that was set back. It ends nothing:
 * the event may be in force once that clock is right.
 */
function dropKeptLimit(state: ControlState, id: ChargerId, now: Instant): void {
  const { kept } = state.occupancy;
  const [vehicle, limitedAt, idleAt] = [kept.of(id), kept.limitedAt(id), kept.idleAt(id)];
  if (vehicle === null || limitedAt === null) return;
  const command = state.commands.get(id)?.command;
  const isIdle = idleAt !== null && idleAt <= now;
  // A hold or an observe period frees the charger until its end, and the event may go on behind it.
  const isExempt = command?.cause === "operator" || command?.cause === "observe";
  const isDueAgain = now < limitedAt || state.agenda.allInForce(vehicle, now).length > 0;
  if (isIdle || command === undefined) kept.drop(id);
  else if (command.desired.kind !== "release") kept.limited(id, now);
  else if (!isDueAgain || (command.decidedAt >= limitedAt && !isExempt)) kept.drop(id);
}

/** Ends a kept limit that is over. Returns the rows that also end it for the next start. */
export function endKeptLimit(state: ControlState, id: ChargerId, now: Instant): readonly Change[] {
  if (state.occupancy.kept.of(id) !== null) dropKeptLimit(state, id, now);
  const record = state.commands.get(id);
  if (record?.limitedAt === undefined || state.occupancy.kept.of(id) !== null) return [];
  const { limitedAt: _, ...rest } = record;
  state.commands.record(rest);
  return [{ kind: "command", record: rest }];
}

/** Members that a start needs to keep the limit of this command's charger, after the clock was set back. */
export function limitedBefore(
  { occupancy: { kept } }: ControlState,
  { charger, vehicle, decidedAt }: Command,
): Pick<CommandRecord, "limitedAt"> {
  const limitedAt = kept.limitedAt(charger);
  return limitedAt !== null && decidedAt < limitedAt && kept.of(charger) === vehicle ? { limitedAt } : {};
}
