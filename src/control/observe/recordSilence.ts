import { auditRow, type AuditEntry, textOf } from "../../domain/audit.ts";
import { isLimiting, reallySent } from "../../domain/command.ts";
import { formatLevel } from "../../domain/setpoint.ts";
import { NO_CHANGES, type Reevaluation, reevaluationsOf, type StageResult } from "../stage.ts";
import type { ControlState } from "../state.ts";
import type { Presence } from "./presence.ts";
import type { Change } from "../../domain/changes.ts";
import type { ChargerMessage } from "../../domain/telemetry.ts";
import { type ChargerId, type Instant, instant, iso, type Millis } from "../../domain/units.ts";
import { inSteps, type ResumableTask } from "../../platform/cooperative.ts";
import { keepLimits } from "./keepLimits.ts";

/** Chargers that became silent, and what follows from it. */
export interface SilenceResult {
  readonly changes: readonly Change[];
  /** For the log only: silent chargers without a limit of ours. */
  readonly warnings: readonly string[];
  /** Chargers whose occupant may have changed. A silent charger keeps no claim on another's vehicle. */
  readonly affectedChargers: readonly ChargerId[];
}

/** Chargers that stopped sending messages, each once. Those with a limit of ours get a row in the record. */
export function recordSilences(
  state: ControlState,
  tick: Millis,
  now: Instant,
  isLinked: (charger: ChargerId) => boolean,
): SilenceResult {
  const { silentAfter } = state.settings;
  const changes: Change[] = [];
  const warnings: string[] = [];
  const affectedChargers: ChargerId[] = [];
  // No message is expected from a charger that reported offline.
  const isExpected = (id: ChargerId): boolean => isLinked(id) && state.presence.of(id).online !== false;
  for (const id of state.silence.newlySilent(tick, silentAfter, isExpected)) {
    state.feed.announce("charger", id);
    const message = `${id} is unreachable: no message for ${silentAfter / 1000} s`;
    const setpoint = lastLimit(state, id);
    if (setpoint === null) warnings.push(message);
    else {
      const since = iso(instant(now - silentAfter));
      changes.push(
        row(id, now, `${message}; its last setpoint is ${setpoint}`, {
          warning: "silent",
          told: setpoint,
          since,
        }),
      );
    }
    const affected = state.occupancy.depart(id, "silent");
    changes.push(...keepLimits(state, affected, now));
    affectedChargers.push(...affected);
  }
  return { changes, warnings, affectedChargers };
}

/** Ends a silence at any live message. The setpoint is sent again, since publishes meanwhile may be lost. */
export function recordReturn(
  state: ControlState,
  message: ChargerMessage,
  tick: Millis,
  now: Instant,
): StageResult {
  const { charger: id } = message;
  const isLive = isLiveMessage(message);
  const silentFor = isLive && state.chargers.has(id) ? state.silence.noteMessage(id, tick) : null;
  if (silentFor === null) return NO_CHANGES;
  state.feed.announce("charger", id);
  const sentence = `${id} sends messages again after ${Math.round(silentFor / 1000)} s`;
  const changes =
    lastLimit(state, id) === null ? [] : [row(id, now, sentence, { silentMs: silentFor, over: true })];
  return { changes, reevaluations: reevaluationsOf([id], true) };
}

/**
 * A retained message is old, and "offline" may be the last will: the broker publishes that, not the charger. That a command is
 * unconfirmed or forgotten may be found without a message, when a time is over.
 */
function isLiveMessage(message: ChargerMessage): boolean {
  switch (message.kind) {
    case "online":
      return message.online && !message.snapshot;
    case "telemetry":
      return message.snapshot !== true;
    case "unconfirmed":
    case "forgot":
      return false;
    case "ack":
    case "malformed":
      return true;
  }
}

/**
 * Ends the outages that the last run left open. The charger may have come back while nothing ran.
 * A charger that is still away gets a new row as soon as that is detected.
 * Without this, every later proof would show an outage without end. `open`: the rows of their begin.
 */
export function endOutagesOfLastRun(
  state: ControlState,
  open: readonly AuditEntry[],
  tick: Millis,
  now: Instant,
): readonly Change[] {
  return open.map(({ at, charger, facts, ...entry }) => {
    const outage = textOf(facts, "outage");
    // The charger sent messages before, so messages are expected from now on.
    if (charger !== null) state.silence.noteMessage(charger, tick);
    return {
      kind: "audit",
      entry: {
        ...entry,
        at: now,
        charger,
        words: `${charger ?? `the ${outage}`} was away when the last run ended; not known yet whether it still is`,
        facts: { outage, since: textOf(facts, "since") ?? iso(at), over: true },
      },
    };
  });
}

/**
 * Records that a charger under a limit of ours went offline, and its return.
 * The charger, or the last will at its broker, reports it.
 */
export function recordOnlineChange(
  state: ControlState,
  id: ChargerId,
  before: Presence,
  online: boolean,
  now: Instant,
): readonly Change[] {
  const setpoint = lastLimit(state, id);
  if (setpoint === null || (online ? before.online !== false : before.online === false)) return [];
  return online
    ? [row(id, now, `${id} is online again`, { over: true })]
    : [
        row(id, now, `${id} is offline; its last setpoint is ${setpoint}`, {
          warning: "offline",
          told: setpoint,
          since: iso(now),
        }),
      ];
}

/** Level of the last limit that was sent. Null: none of ours. */
function lastLimit(state: ControlState, id: ChargerId): string | null {
  const record = state.commands.get(id);
  const sent = record === undefined ? null : reallySent(record);
  return sent !== null && isLimiting(sent) ? formatLevel(sent.command.desired) : null;
}

const row = (
  charger: ChargerId,
  at: Instant,
  message: string,
  facts: Readonly<Record<string, string | number | boolean>>,
): Change => auditRow("silence", at, message, { charger, facts: { outage: "charger", ...facts } });

/**
 * A charger may reconnect to its broker after us, and miss what was sent at once. One that is written to only on
 * change gets its level or its release once more, unless telemetry shows it. The retries of a release (`isRetried`) may
 * be minutes apart by then. `since`: when the broker returned.
 */
export const lateAfterReturn = (
  { chargers, commands }: ControlState,
  broker: string,
  since: Instant,
): readonly ChargerId[] =>
  [...chargers.values()].flatMap(({ id, broker: own, refresh }) => {
    const record = commands.get(id);
    if (own !== broker || refresh !== null || record === undefined) return [];
    const { progress, sentAt } = record;
    // A value that the broker kept from before may have shown that it is not followed.
    const isOpen = progress === "accepted" || progress === "acknowledged" || progress === "notFollowed";
    return isOpen && sentAt !== null && sentAt >= since ? [id] : [];
  });

/** A broker is back: its chargers had no way to send messages. All of them are evaluated. */
export function* brokerReturned(
  { chargers, silence, presence, sendQueue }: ControlState,
  broker: string,
  tick: Millis,
): ResumableTask<readonly Reevaluation[]> {
  const back: Reevaluation[] = [];
  yield* inSteps(chargers.values(), ({ id, broker: own }) => {
    if (own !== broker) return;
    silence.restartTimer(id, tick);
    presence.expectReturn(id);
    back.push({ charger: id, reassert: !sendQueue.isInFlight(id) });
  });
  return back;
}
