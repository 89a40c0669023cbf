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

export interface Judged {
  readonly changes: readonly Change[];
  /** What holds is to be said again. */
  readonly resend: boolean;
}

const NOTHING: Judged = { changes: [], resend: false };

/** Holds what a charger reports against what it was told, once it had the time to get there. */
export function judge(depot: ControlState, id: ChargerId, told: Telemetry, now: Instant): Judged {
  const [charger, record] = [depot.chargers.get(id), depot.commands.get(id)];
  if (charger === undefined || record === undefined || depot.barTo("judge", id) !== null) return NOTHING;
  const { command, progress, replaces, judgeAt: due } = record;
  // Who does it after all need not wait for the next judgement, who still does not has until then.
  const isEarly = due !== null && now < due;
  if (due === null || (isEarly && progress !== "notFollowed")) return NOTHING;
  const vehicle = command.vehicle === null ? null : (depot.vehicles.get(command.vehicle) ?? null);
  const { verdict } = depot.settings;
  const seen = complianceWith(command.desired, replaces, told, charger, vehicle, verdict);
  switch (seen.kind) {
    case "unknown":
      return NOTHING;
    case "followed":
      // Less than it was told is no violation, but it did not take it either.
      if (progress === "followed" || (progress === "refused" && isRetried(record, charger.refresh)))
        return NOTHING;
      return followed(depot, record, seen.words, now);
    case "notFollowed":
      return isEarly ? notYet(depot, record) : notFollowed(depot, charger, record, seen.words, now);
  }
}

/** After an alarm only a charger that goes on following closes it: each moment in which we win would else be two rows. */
function followed(depot: ControlState, record: CommandRecord, words: string, now: Instant): Judged {
  const since = record.followedAt ?? now;
  const next = { ...record, followedAt: since };
  if (record.resends <= MOST_RESENDS)
    return closed(depot, { ...next, progress: "followed" }, `followed: ${words}`, now);
  if (isSteady(next, depot.settings.verdict.ramp, now))
    return closed(depot, { ...next, progress: "followed", resends: 0 }, `followed: ${words}`, now);
  depot.commands.set(record.command.charger, next);
  return NOTHING;
}

/** It is not time to judge it again, but it does not follow: what it followed until now does not count. */
function notYet(depot: ControlState, record: CommandRecord): Judged {
  if (record.followedAt != null) depot.commands.set(record.command.charger, { ...record, followedAt: null });
  return NOTHING;
}

function notFollowed(
  depot: ControlState,
  { id, writesPerHour }: Charger,
  record: CommandRecord,
  words: string,
  now: Instant,
): Judged {
  const { ramp } = depot.settings.verdict;
  const isForgotten = record.progress === "followed" && isSteady(record, ramp, now);
  const resends = isForgotten ? 0 : record.resends;
  if (resends > MOST_RESENDS) return notYet(depot, record);
  const next: CommandRecord = {
    ...record,
    progress: "notFollowed",
    followedAt: null,
    resends: resends + 1,
    judgeAt: nextJudgement(now, ramp, resends + 1),
  };
  if (resends === MOST_RESENDS) {
    const still = `still not followed after ${MOST_RESENDS} more tries: ${words}; something else controls it, or it is broken`;
    return closed(depot, next, still, now, { alarm: true });
  }
  const writableAt = writesPerHour === null ? now : depot.writes.roomAt(id, writesPerHour, now);
  if (writableAt > now) {
    const later = `the next try is at ${depot.wallClock(writableAt)}, it bears ${writesPerHour} writes an hour`;
    return closed(depot, { ...next, resends, judgeAt: writableAt }, `not followed: ${words}; ${later}`, now);
  }
  if (writesPerHour !== null) depot.writes.add(id, now);
  const again = `not followed: ${words}; sent again (${resends + 1} of ${MOST_RESENDS})`;
  return { ...closed(depot, next, again, now, { resent: true }), resend: true };
}

function closed(
  depot: ControlState,
  record: CommandRecord,
  words: string,
  now: Instant,
  more: { readonly alarm?: true; readonly resent?: true } = {},
): Judged {
  depot.commands.set(record.command.charger, record);
  depot.dirty.add(record.command.charger);
  const facts = { progress: record.progress, resends: record.resends, ...more };
  return {
    changes: [outcomeRow(record.command, now, words, facts), { kind: "command", record }],
    resend: false,
  };
}
