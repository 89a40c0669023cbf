import { complianceWith } from "./compliance.ts";
import { type CommandRecord, isRetried, MOST_RESENDS } from "../../domain/command.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
import { followed, followedNoLonger, isAlarming, notFollowed, retriedAt } from "../send/commands.ts";
import { outcomeRow } from "../send/outcome.ts";

export interface JudgeResult {
  readonly changes: readonly Change[];
  /** The setpoint is to be sent again. */
  readonly resend: boolean;
}

const NOTHING: JudgeResult = { changes: [], resend: false };

/** Compares a charger's telemetry with its setpoint, after the ramp time. */
export function judge(depot: ControlState, id: ChargerId, telemetry: Telemetry, now: Instant): JudgeResult {
  const [charger, record] = [depot.chargers.get(id), depot.commands.get(id)];
  if (charger === undefined || record === undefined || depot.barTo("judge", id) !== null) return NOTHING;
  const { command, progress, replaces, judgeAt: due } = record;
  // A charger that follows at last is judged at once. One that still does not has until the next judgement.
  const isEarly = due !== null && now < due;
  if (due === null || (isEarly && progress !== "notFollowed")) return NOTHING;
  const vehicle = command.vehicle === null ? null : (depot.vehicles.get(command.vehicle) ?? null);
  const { verdict } = depot.settings;
  const compliance = complianceWith(command.desired, replaces, telemetry, charger, vehicle, verdict);
  switch (compliance.kind) {
    case "unknown":
      return NOTHING;
    case "followed":
      // Drawing less is no violation, but the charger did not accept the setpoint either.
      if (progress === "followed" || (progress === "refused" && isRetried(record, charger.refresh)))
        return NOTHING;
      return recordFollowed(depot, record, compliance.words, now);
    case "notFollowed":
      return isEarly
        ? resetFollowed(depot, record)
        : recordNotFollowed(depot, charger, record, compliance.words, now);
  }
}

/**
 * After an alarm, only a charger that follows steadily closes it. Otherwise each short success would add two
 * rows.
 */
function recordFollowed(
  depot: ControlState,
  record: CommandRecord,
  words: string,
  now: Instant,
): JudgeResult {
  const next = followed(record, depot.settings.verdict.ramp, now);
  if (next.progress === "followed") return recordVerdict(depot, next, `followed: ${words}`, now);
  depot.commands.record(next);
  return NOTHING;
}

/**
 * The next judgement is not due, but the charger does not follow: the time that it followed no longer counts.
 */
function resetFollowed(depot: ControlState, record: CommandRecord): JudgeResult {
  const next = followedNoLonger(record);
  if (next !== null) depot.commands.record(next);
  return NOTHING;
}

function recordNotFollowed(
  depot: ControlState,
  { id, writesPerHour }: Charger,
  record: CommandRecord,
  words: string,
  now: Instant,
): JudgeResult {
  const { ramp } = depot.settings.verdict;
  const next = notFollowed(record, ramp, now);
  if (next === null) return resetFollowed(depot, record);
  if (isAlarming(next)) {
    const still = `still not followed after ${MOST_RESENDS} more tries: ${words}; something else controls it, or it is broken`;
    return recordVerdict(depot, next, still, now, { alarm: true });
  }
  const bar = depot.barTo("queue", id);
  if (bar !== null) {
    if (record.progress === "notFollowed") return resetFollowed(depot, record);
    const tried = { ...next, resends: record.resends };
    return recordVerdict(depot, tried, `not followed: ${words}; not sent again while ${bar}`, now);
  }
  const writableAt = writesPerHour === null ? now : depot.writes.roomAt(id, writesPerHour, now);
  if (writableAt > now) {
    const nextTry = `the next try is at ${depot.wallClock(writableAt)}, it allows ${writesPerHour} writes an hour`;
    return recordVerdict(depot, retriedAt(next, writableAt), `not followed: ${words}; ${nextTry}`, now);
  }
  if (writesPerHour !== null) depot.writes.add(id, now);
  const again = `not followed: ${words}; sent again (${next.resends} of ${MOST_RESENDS})`;
  return { ...recordVerdict(depot, next, again, now, { resent: true }), resend: true };
}

function recordVerdict(
  depot: ControlState,
  record: CommandRecord,
  words: string,
  now: Instant,
  more: { readonly alarm?: true; readonly resent?: true } = {},
): JudgeResult {
  depot.commands.record(record);
  depot.feed.announce("charger", record.command.charger);
  const facts = { progress: record.progress, resends: record.resends, ...more };
  return {
    changes: [outcomeRow(record.command, now, words, facts), { kind: "command", record }],
    resend: false,
  };
}
