import { complianceWith } from "../core/control/compliance.ts";
import { type CommandRecord, isRetried, MOST_RESENDS, nextJudgement } from "../core/control/command.ts";
import type { Depot } from "../core/depot.ts";
import type { Change } from "../core/ledger.ts";
import type { Telemetry } from "../core/site/telemetry.ts";
import type { ChargerId, Instant } from "../core/units.ts";
import { outcomeRow } from "./outcome.ts";

export interface Judged {
  readonly changes: readonly Change[];
  /** What holds is to be said again. */
  readonly resend: boolean;
}

const NOTHING: Judged = { changes: [], resend: false };

/** Holds what a charger reports against what it was told, once it had the time to get there. */
export function judge(depot: Depot, id: ChargerId, told: Telemetry, now: Instant): Judged {
  const [charger, record] = [depot.chargers.get(id), depot.commands.get(id)];
  if (charger === undefined || record === undefined || depot.loans.has(id)) return NOTHING;
  const { command, progress, replaces, resends, judgeAt: due } = record;
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
      return closed(depot, { ...record, progress: "followed", resends: 0 }, `followed: ${seen.words}`, now);
    case "notFollowed": {
      if (isEarly) return NOTHING;
      if (resends > MOST_RESENDS) return NOTHING;
      const judgeAt = nextJudgement(now, verdict.ramp, resends + 1);
      const next: CommandRecord = { ...record, progress: "notFollowed", resends: resends + 1, judgeAt };
      if (resends < MOST_RESENDS) {
        const words = `not followed: ${seen.words}; sent again (${resends + 1} of ${MOST_RESENDS})`;
        return { ...closed(depot, next, words, now), resend: true };
      }
      const words = `still not followed after ${MOST_RESENDS} more tries: ${seen.words}; something else controls it, or it is broken`;
      return closed(depot, next, words, now, { alarm: true });
    }
  }
}

function closed(
  depot: Depot,
  record: CommandRecord,
  words: string,
  now: Instant,
  more: { readonly alarm?: true } = {},
): Judged {
  depot.commands.set(record.command.charger, record);
  depot.dirty.add(record.command.charger);
  const facts = { progress: record.progress, resends: record.resends, ...more };
  return {
    changes: [outcomeRow(record.command, now, words, facts), { kind: "command", record }],
    resend: false,
  };
}
