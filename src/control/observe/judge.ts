import { complianceWith } from "./compliance.ts";
import { type Command, type CommandRecord, isRetried, MOST_RESENDS } from "../../domain/command.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import { type Charger, NATIVE } from "../../domain/charger.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
import { followed, followedNoLonger, isAlarming, notFollowed, retriedAt } from "../send/commands.ts";
import { outcomeRow } from "../send/outcome.ts";

/** Rows of a judgement, and its effect on the queue. */
export interface JudgeResult {
  readonly changes: readonly Change[];
  /** The setpoint is to be sent again. */
  readonly resend: boolean;
}

const NOTHING: JudgeResult = { changes: [], resend: false };

/** Compares a charger's telemetry with its setpoint, after the ramp time. */
export function judge(state: ControlState, id: ChargerId, telemetry: Telemetry, now: Instant): JudgeResult {
  const [charger, record] = [state.chargers.get(id), state.commands.get(id)];
  if (charger === undefined || record === undefined || state.barTo("judge", id) !== null) return NOTHING;
  const { command, progress, replaces, judgeAt: due } = record;
  // A charger that follows at last is judged at once. One that still does not has until the next judgement.
  const isEarly = due !== null && now < due;
  if (due === null || (isEarly && progress !== "notFollowed")) return NOTHING;
  const vehicle = command.vehicle === null ? null : (state.vehicles.get(command.vehicle) ?? null);
  const { verdict } = state.settings;
  const compliance = complianceWith(
    { desired: command.desired, before: replaces },
    telemetry,
    { charger, vehicle },
    verdict,
  );
  switch (compliance.kind) {
    case "unknown":
      return NOTHING;
    case "followed":
      // Drawing less is no violation, but the charger did not accept the setpoint either.
      if (progress === "followed" || (progress === "refused" && isRetried(record, charger.refresh)))
        return NOTHING;
      return recordFollowed(state, record, compliance.observation, now);
    case "notFollowed":
      return isEarly
        ? resetFollowed(state, record)
        : recordNotFollowed(state, charger, record, compliance.observation, now);
  }
}

/**
 * After an alarm, only a charger that follows steadily closes it. Otherwise each short success would add two
 * rows.
 */
function recordFollowed(
  state: ControlState,
  record: CommandRecord,
  observation: string,
  now: Instant,
): JudgeResult {
  const next = followed(record, state.settings.verdict.ramp, now);
  if (next.progress === "followed") return recordVerdict(state, next, `followed: ${observation}`, now);
  state.commands.record(next);
  return NOTHING;
}

/**
 * A command of an earlier start was refused, or is not followed. A native charger that accepted a higher number since
 * refuses or ignores this one each time. True: the command is to be decided again, which was not known yet.
 */
export function noteOutnumbered({ chargers, commands, epoch }: ControlState, command: Command): boolean {
  const isNative = chargers.get(command.charger)?.profile === NATIVE;
  if (!isNative || command.epoch >= epoch || commands.isNumberRefused(command)) return false;
  commands.numberRefused(command);
  return true;
}

/**
 * The next judgement is not due, but the charger does not follow: the time that it followed no longer counts.
 */
function resetFollowed(state: ControlState, record: CommandRecord): JudgeResult {
  const next = followedNoLonger(record);
  if (next !== null) state.commands.record(next);
  return NOTHING;
}

function recordNotFollowed(
  state: ControlState,
  { id, writesPerHour }: Charger,
  record: CommandRecord,
  observation: string,
  now: Instant,
): JudgeResult {
  const { ramp } = state.settings.verdict;
  const next = notFollowed(record, ramp, now);
  if (next === null) return resetFollowed(state, record);
  if (isAlarming(next)) {
    const still = `still not followed after ${MOST_RESENDS} more tries: ${observation}; something else controls it, or it is broken`;
    return recordVerdict(state, next, still, now, { alarm: true });
  }
  // A publish that fails is repeated by itself: no try of the charger is used up.
  const bar = state.barTo("queue", id) ?? (record.failures > 0 ? "its publishes fail" : null);
  if (bar !== null) {
    if (record.progress === "notFollowed") return resetFollowed(state, record);
    const tried = { ...next, resends: record.resends };
    return recordVerdict(state, tried, `not followed: ${observation}; not sent again while ${bar}`, now);
  }
  const writableAt = writesPerHour === null ? now : state.writes.roomAt(id, writesPerHour, now);
  if (writableAt > now) {
    const nextTry = `the next try is at ${state.wallClock(writableAt)}, it allows ${writesPerHour} writes an hour`;
    return recordVerdict(state, retriedAt(next, writableAt), `not followed: ${observation}; ${nextTry}`, now);
  }
  if (writesPerHour !== null) state.writes.add(id, now);
  // A state put back from a copy lacks the numbers that the charger has accepted since.
  noteOutnumbered(state, record.command);
  const again = `not followed: ${observation}; sent again (${next.resends} of ${MOST_RESENDS})`;
  return { ...recordVerdict(state, next, again, now, { resent: true }), resend: true };
}

function recordVerdict(
  state: ControlState,
  record: CommandRecord,
  message: string,
  now: Instant,
  more: { readonly alarm?: true; readonly resent?: true } = {},
): JudgeResult {
  state.commands.record(record);
  state.feed.announce("charger", record.command.charger);
  const facts = { progress: record.progress, resends: record.resends, ...more };
  return {
    changes: [outcomeRow(record.command, now, message, facts), { kind: "command", record }],
    resend: false,
  };
}
