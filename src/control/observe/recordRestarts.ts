import { auditRow } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { ChargerMessage } from "../../domain/telemetry.ts";
import type { Instant } from "../../domain/units.ts";
import type { ControlState } from "../state.ts";
import type { Presence } from "./presence.ts";
import { hasStarted, isOpen, type Reboot, type RebootProgress, rebootSentence } from "./reboots.ts";

/** Changes the progress of a reboot, and records it for people. */
export function progressed(
  state: ControlState,
  reboot: Reboot,
  progress: RebootProgress,
  now: Instant,
  because: string | null = null,
): readonly Change[] {
  const next: Reboot = { ...reboot, progress, changedAt: now, because };
  const { charger, by, id } = next;
  state.reboots.record(next);
  state.feed.announce("charger", charger);
  // Intermediate steps are shown while they last.
  if (isOpen(next)) return [];
  const facts = { by, reboot: id, progress, afterMs: now - reboot.at, because };
  return [auditRow("operator", now, rebootSentence(next), { charger, facts })];
}

/**
 * Follows the restarts of a charger by one of its messages. Called once the message is handled. `before`: its presence
 * before the message. `wasSilent`: the message ends a silence.
 */
export function followRestart(
  state: ControlState,
  message: ChargerMessage,
  before: Presence,
  wasSilent: boolean,
  now: Instant,
): readonly Change[] {
  const { charger } = message;
  if (!state.chargers.has(charger)) return [];
  if (message.kind === "ack") return answeredReboot(state, message, now);
  const { online, telemetry } = state.presence.of(charger);
  const mark = message.kind === "telemetry" ? telemetry?.started : undefined;
  const isStart = hasStarted(before.telemetry?.started, mark);
  const hasReturned = (before.online === false && online === true) || wasSilent;
  if (isStart) state.reboots.count(charger, "starts", now);
  else if (mark !== undefined) state.reboots.count(charger, "starts", null);
  if (hasReturned) state.reboots.count(charger, "returns", now);
  const reboot = state.reboots.of(charger);
  if (reboot === null) return [];
  const { progress } = reboot;
  if (isOpen(reboot) && online === false)
    return progress === "away" ? [] : progressed(state, reboot, "away", now);
  const isAwaited = isOpen(reboot) || progress === "missing";
  return isAwaited && (isStart || hasReturned) ? progressed(state, reboot, "back", now) : [];
}

function answeredReboot(
  state: ControlState,
  { charger, id, accepted, reason }: ChargerMessage & { readonly kind: "ack" },
  now: Instant,
): readonly Change[] {
  const reboot = state.reboots.of(charger);
  // The answer may arrive before the broker's.
  if (reboot?.id !== id || (reboot.progress !== "sent" && reboot.progress !== "asked")) return [];
  return progressed(state, reboot, accepted ? "accepted" : "refused", now, reason);
}

/** Ends the reboots whose time is over. */
export const endOverdueReboots = (state: ControlState, now: Instant): readonly Change[] =>
  state.reboots.overdue(now).flatMap((reboot) => {
    const { charger } = reboot;
    const { online, heardAt } = state.presence.of(charger);
    const isGone = online === false || state.silence.has(charger) || (heardAt ?? 0) <= reboot.at;
    return progressed(state, reboot, isGone ? "missing" : "unnoticed", now);
  });
