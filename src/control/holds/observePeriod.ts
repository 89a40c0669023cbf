import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change, Committed } from "../../domain/changes.ts";
import { isLimiting, reallySent } from "../../domain/command.ts";
import { cappedAfterJump, type ObservePeriod, periodEnd } from "../../domain/hold.ts";
import { type ChargerId, type Instant, iso } from "../../domain/units.ts";
import type { ControlState } from "../state.ts";
import { ITSELF } from "./lifecycle.ts";
import { formatPeriod } from "./siteMode.ts";

/** Changes to store, and the chargers to evaluate. */
interface ModeChange {
  readonly changes: readonly Change[];
  readonly affectedChargers: readonly { readonly charger: ChargerId; readonly reassert: boolean }[];
}

/** A person's request about the mode, as a stage of control applies it. Settled after its commit. */
export interface ModeRequest {
  readonly apply: (depot: ControlState, now: Instant) => ModeChange;
  readonly settle: (committed: Committed) => void;
}

/** Begins a period, or replaces the one that lasts. Limited chargers are released or kept, as `control.onObserve` says. */
export function beginObserving(depot: ControlState, period: ObservePeriod, now: Instant): ModeChange {
  depot.mode.begin(period);
  const { by, reason, since } = period;
  const until = iso(periodEnd(period));
  return {
    changes: [
      { kind: "observePeriod", period },
      modeRow(now, formatPeriod(period, depot.wallClock), {
        mode: "observe",
        by,
        reason,
        since: iso(since),
        until,
      }),
    ],
    affectedChargers: [...depot.chargers.keys()].map((charger) => ({ charger, reassert: false })),
  };
}

/**
 * Ends the period. Decisions that were only observed no longer count: each charger goes on from the last command that
 * was published, and gets the level that holds for it now.
 */
export function endObserving(
  depot: ControlState,
  period: ObservePeriod,
  by: string,
  why: string,
  now: Instant,
): ModeChange {
  depot.mode.end();
  // A command that is removed or replaced meanwhile does not disturb the walk.
  for (const record of depot.commands.values()) {
    const sent = reallySent(record);
    if (sent === null) depot.commands.forget(record.command.charger);
    else if (sent !== record) depot.commands.record(sent);
  }
  depot.ramp?.recall(depot.commands.values(), depot.chargers, now);
  const begun = `which began ${depot.wallClock(period.since)} by ${period.by}`;
  const ended = `mode ${depot.mode.current}: observe, ${begun}, ended${by === ITSELF ? "" : ` by ${by}`}: ${why}`;
  return {
    changes: [
      { kind: "observePeriod", period: null },
      modeRow(now, ended, { mode: depot.mode.current, by, reason: why, since: iso(period.since) }),
    ],
    affectedChargers: [...depot.chargers.keys()].map((charger) => {
      const last = depot.commands.get(charger);
      return { charger, reassert: last !== undefined && isLimiting(last) };
    }),
  };
}

/** Handles the passage of time, and a step of the clock by `jump` ms. Null: the mode stays. */
export function advanceMode(depot: ControlState, jump: number, now: Instant): ModeChange | null {
  const { period } = depot.mode;
  const capped = period === null || jump >= 0 ? period : cappedAfterJump(period, -jump);
  const isCapped = capped !== null && capped !== period;
  if (isCapped) depot.mode.begin(capped);
  const due = depot.mode.due(now);
  if (due !== null) {
    const why = due.until <= due.cap ? "its time has come" : "it has lasted for a day";
    return endObserving(depot, due, ITSELF, why, now);
  }
  return isCapped ? { changes: [{ kind: "observePeriod", period: capped }], affectedChargers: [] } : null;
}

const modeRow = (at: Instant, words: string, facts: Readonly<Record<string, Json>>): Change =>
  auditRow("operator", at, words, { facts });
