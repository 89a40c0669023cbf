import { formatLevel } from "../../domain/setpoint.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Command, CommandRecord } from "../../domain/command.ts";
import { isDrawing } from "./keptLimits.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
import { outcomeRow } from "../send/outcome.ts";

/**
 * Chargers that lost their vehicle to another charger's claim, or to their own absence, keep their limit.
 * Each keeps it until it reports unplugged or draws nothing for a minute. The row is an alarm.
 */
export function keepLimits(depot: ControlState, lost: Iterable<ChargerId>, now: Instant): readonly Change[] {
  const changes: Change[] = [];
  for (const id of lost) {
    const command = depot.commands.get(id)?.command;
    const { telemetry } = depot.presenceOf(id);
    if (command === undefined || command.desired.kind === "release" || command.vehicle === null) continue;
    if (!depot.occupancy.hasLost(id) || telemetry?.state === "unplugged") continue;
    const { vehicle, desired } = command;
    depot.occupancy.kept.keep(id, vehicle, now);
    if (telemetry !== null) noteDraw(depot, id, telemetry, now);
    depot.feed.announce("charger", id);
    const where = depot.occupancy.where(vehicle);
    const elsewhere =
      where === null ? `${vehicle} is not claimed any more` : `${vehicle} is reported at ${where}`;
    const words = `keeps ${formatLevel(desired)}: ${elsewhere}, but ${id} has not reported that it is unplugged`;
    changes.push(outcomeRow(command, now, words, { warning: "contradicted", alarm: true, where }));
  }
  return changes;
}

/** Records the draw of a charger that keeps a limit. During a pause, drawing nothing proves nothing. */
export function noteDraw(
  depot: ControlState,
  id: ChargerId,
  telemetry: Parameters<typeof isDrawing>[0],
  now: Instant,
): void {
  const isPaused = depot.commands.get(id)?.command.desired.kind === "pause";
  depot.occupancy.kept.draws(id, isPaused ? true : isDrawing(telemetry), now);
  const idleAt = depot.occupancy.kept.idleAt(id);
  if (idleAt !== null) depot.wake(id, idleAt);
}

/**
 * Drops a kept limit once its charger drew nothing for a minute, or is not limited any more, but by a hold.
 * A release decided before the limit was last found comes from a clock that was set back. It ends nothing:
 * the event may be in force once that clock is right.
 */
function dropKeptLimit(depot: ControlState, id: ChargerId, now: Instant): void {
  const { kept } = depot.occupancy;
  const [vehicle, limitedAt, idleAt] = [kept.of(id), kept.limitedAt(id), kept.idleAt(id)];
  if (vehicle === null || limitedAt === null) return;
  const command = depot.commands.get(id)?.command;
  const isIdle = idleAt !== null && idleAt <= now;
  // A hold or an observe period frees the charger until its end, and the event may go on behind it.
  const isExempt = command?.cause === "operator" || command?.cause === "observe";
  const isDueAgain = now < limitedAt || depot.agenda.allInForce(vehicle, now).length > 0;
  if (isIdle || command === undefined) kept.drop(id);
  else if (command.desired.kind !== "release") kept.limited(id, now);
  else if (!isDueAgain || (command.decidedAt >= limitedAt && !isExempt)) kept.drop(id);
}

/** Ends a kept limit that is over. Returns the rows that also end it for the next start. */
export function endKeptLimit(depot: ControlState, id: ChargerId, now: Instant): readonly Change[] {
  if (depot.occupancy.kept.of(id) !== null) dropKeptLimit(depot, id, now);
  const record = depot.commands.get(id);
  if (record?.limitedAt === undefined || depot.occupancy.kept.of(id) !== null) return [];
  const { limitedAt: _, ...rest } = record;
  depot.commands.record(rest);
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
