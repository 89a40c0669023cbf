import { complianceWith } from "./compliance.ts";
import {
  type CommandRecord,
  isRetried,
  isSteady,
  MOST_RESENDS,
  nextJudgement,
} from "../../domain/command.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Charger } from "../../domain/charger.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
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
      return followed(depot, record, compliance.words, now);
    case "notFollowed":
      return isEarly
        ? resetFollowed(depot, record)
        : notFollowed(depot, charger, record, compliance.words, now);
  }
}

/**
 * After an alarm, only a charger that follows steadily closes it. Otherwise each short success would add two
 * rows.
 */
function followed(depot: ControlState, record: CommandRecord, words: string, now: Instant): JudgeResult {
  const since = record.followedAt ?? now;
  const next = { ...record, followedAt: since };
  if (record.resends <= MOST_RESENDS)
    return recordVerdict(depot, { ...next, progress: "followed" }, `followed: ${words}`, now);
  if (isSteady(next, depot.settings.verdict.ramp, now))
    return recordVerdict(depot, { ...next, progress: "followed", resends: 0 }, `followed: ${words}`, now);
  depot.commands.record(next);
  return NOTHING;
}

/**
 * The next judgement is not due, but the charger does not follow: the time that it followed no longer counts.
 */
function resetFollowed(depot: ControlState, record: CommandRecord): JudgeResult {
  if (record.followedAt != null) depot.commands.record({ ...record, followedAt: null });
  return NOTHING;
}

function notFollowed(
  depot: ControlState,
  { id, writesPerHour }: Charger,
  record: CommandRecord,
  words: string,
  now: Instant,
): JudgeResult {
  const { ramp } = depot.settings.verdict;
  const isForgotten = record.progress === "followed" && isSteady(record, ramp, now);
  const resends = isForgotten ? 0 : record.resends;
  if (resends > MOST_RESENDS) return resetFollowed(depot, record);
  const next: CommandRecord = {
    ...record,
    progress: "notFollowed",
    followedAt: null,
    resends: resends + 1,
    judgeAt: nextJudgement(now, ramp, resends + 1),
  };
  if (resends === MOST_RESENDS) {
    const still = `still not followed after ${MOST_RESENDS} more tries: ${words}; something else controls it, or it is broken`;
    return recordVerdict(depot, next, still, now, { alarm: true });
  }
  const writableAt = writesPerHour === null ? now : depot.writes.roomAt(id, writesPerHour, now);
  if (writableAt > now) {
    const nextTry = `the next try is at ${depot.wallClock(writableAt)}, it allows ${writesPerHour} writes an hour`;
    return recordVerdict(
      depot,
      { ...next, resends, judgeAt: writableAt },
      `not followed: ${words}; ${nextTry}`,
      now,
    );
  }
  if (writesPerHour !== null) depot.writes.add(id, now);
  const again = `not followed: ${words}; sent again (${resends + 1} of ${MOST_RESENDS})`;
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
  depot.feed.chargerChanged(record.command.charger);
  const facts = { progress: record.progress, resends: record.resends, ...more };
  return {
    changes: [outcomeRow(record.command, now, words, facts), { kind: "command", record }],
    resend: false,
  };
}
