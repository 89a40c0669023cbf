import type { Json } from "../../domain/audit.ts";
import { commandId, type CommandRecord } from "../../domain/command.ts";
import type { Reason } from "../../domain/reason.ts";
import { valueOf } from "../../domain/setpoint.ts";
import { iso } from "../../domain/units.ts";
import type { Verdict } from "../decide/verdict.ts";
import { holdFacts } from "../holds/holds.ts";
import type { Presence } from "../observe/presence.ts";

/**
 * The state of one charger for the retained `state` topic and the API.
 * Three values stand apart: asked by the event, allowed by limits, measured.
 * The command's progress, its reason and its end complete it.
 */
export function chargerState(
  verdict: Verdict,
  record: CommandRecord | undefined,
  presence: Presence,
  why: Reason | null,
  isSilent: boolean,
): Readonly<Record<string, Json>> {
  const { winner, until, vehicle, occupant } = verdict;
  const telemetry = presence.telemetry;
  return {
    charger: verdict.charger.id,
    vehicle: vehicle?.id ?? null,
    occupant: occupant.kind,
    asked:
      winner === null
        ? null
        : { kind: winner.setpoint.kind, ...valueOf(winner.setpoint), event: winner.event.id },
    allowed:
      record === undefined ? null : { kind: record.command.desired.kind, ...valueOf(record.command.desired) },
    measured:
      telemetry === null
        ? null
        : {
            // The clock of the charger may be hours behind, and the page calls old values stale.
            at: iso(presence.measuredAt ?? telemetry.at),
            state: telemetry.state ?? null,
            powerW: telemetry.powerW ?? null,
            currentsA: telemetry.currentsA ?? null,
            limitA: telemetry.limitA ?? null,
          },
    hold: verdict.hold === null ? null : holdFacts(verdict.hold),
    online: presence.online,
    reachable: reachable(presence, isSilent),
    heardAt: presence.heardAt === null ? null : iso(presence.heardAt),
    verdict: record?.progress ?? "none",
    command: record === undefined ? null : commandId(record.command),
    reason: why,
    until: until === null ? null : iso(until),
  };
}

/** Null: no message so far. Some chargers never send one. */
function reachable({ online, heardAt }: Presence, isSilent: boolean): boolean | null {
  if (isSilent || online === false) return false;
  return heardAt === null ? null : true;
}
