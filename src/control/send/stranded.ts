import { type CommandRecord, isToBeFreed, leaseOf, reallySent, type Decision } from "../../domain/command.ts";
import { formatLevel } from "../../domain/setpoint.ts";
import { after, type ChargerId, earlier, type Instant } from "../../domain/units.ts";
import type { ControlState } from "../state.ts";

/** Chargers with a sent command of ours other than a release, or whose release was never sent. */
export const limited = (depot: ControlState): readonly CommandRecord[] =>
  [...depot.commands.values()].flatMap((record) => {
    const sent = reallySent(record);
    return sent !== null && isToBeFreed(sent) ? [sent] : [];
  });

/**
 * In observe mode: the command that an earlier run left on a charger, and its release.
 * `release` null: it is decided already and still to be sent. Null: the charger is not stranded.
 */
export function strandedRelease(
  depot: ControlState,
  charger: ChargerId,
): { readonly standing: CommandRecord; readonly release: Decision | null } | null {
  const last = depot.commands.get(charger);
  if (depot.barTo("plan", charger) !== "observing" || depot.settings.onObserve === "keep") return null;
  if (last === undefined) return null;
  const standing = reallySent(last);
  if (standing === null || !isToBeFreed(standing)) return null;
  const { command, progress } = last;
  if (progress !== "observed" && command.cause === "observe") return { standing, release: null };
  const { vehicle, event } = standing.command;
  return {
    standing,
    release: { desired: { kind: "release" }, until: null, vehicle, event, cause: "observe" },
  };
}

/**
 * Message for a charger that we stop commanding: its level, until when, and what frees it.
 * Null: the charger has ended its limit by itself.
 */
export function formatStays(
  { chargers, settings, wallClock }: ControlState,
  { command, sentAt, replaces }: CommandRecord,
  now: Instant,
): string | null {
  const id = command.charger;
  const level =
    command.desired.kind !== "release"
      ? formatLevel(command.desired)
      : replaces === null
        ? "the level before its release"
        : `${formatLevel(replaces)}, as its release did not go out,`;
  const stays = `${id} stays at ${level}`;
  const whenSilent = chargers.get(id)?.whenSilent ?? { kind: "holds" };
  switch (whenSilent.kind) {
    case "lease": {
      const leased = after(sentAt ?? command.decidedAt, leaseOf(settings.refresh));
      const end = command.until === null ? leased : earlier(leased, command.until);
      return end <= now
        ? null
        : `${stays} until ${wallClock(end)}, then it goes back to its own limits by itself`;
    }
    case "timeout": {
      const end = wallClock(after(now, whenSilent.after));
      return whenSilent.effect === "pause"
        ? `${stays} until ${end}, then it pauses by itself until it is freed`
        : `${stays} until ${end}, then it goes back to its own limits by itself`;
    }
    case "holds":
      return `${stays} until it is freed: it holds its last level without end`;
  }
}

/** At a start in observe mode: each limited charger, and what frees it. */
export function formatStranded(depot: ControlState, now: Instant): readonly string[] {
  if (depot.barTo("plan", null) !== "observing") return [];
  const { onObserve } = depot.settings;
  return limited(depot).flatMap((record) => {
    const stays = formatStays(depot, record, now);
    if (stays === null) return [];
    const isReleased = onObserve === "release" && depot.chargers.has(record.command.charger);
    return [
      isReleased
        ? `${record.command.charger} was left at ${formatLevel(record.command.desired)} by an earlier run: it is released now, once, as control.mode is observe`
        : `${stays}. To free it, start once with control.onObserve: release or control.mode: drive`,
    ];
  });
}
