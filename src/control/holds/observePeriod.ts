import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import { isLimiting, reallySent } from "../../domain/command.ts";
import { cappedAfterJump, type ObservePeriod, periodEnd } from "../../domain/hold.ts";
import { type Instant, iso } from "../../domain/units.ts";
import { reevaluationsOf, type StageResult } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { ITSELF } from "./lifecycle.ts";
import { formatPeriod } from "../decide/gate.ts";

/** Begins a period, or replaces the one that lasts. Limited chargers are released or kept, by `control.onObserve`. */
export function beginObserving(state: ControlState, period: ObservePeriod, now: Instant): StageResult {
  state.mode.begin(period);
  const { by, reason, since } = period;
  const until = iso(periodEnd(period));
  return {
    changes: [
      { kind: "observePeriod", period },
      modeRow(now, formatPeriod(period, state.wallClock), {
        mode: "observe",
        by,
        reason,
        since: iso(since),
        until,
      }),
    ],
    reevaluations: reevaluationsOf(state.chargers.keys()),
  };
}

/**
 * Ends the period. Decisions that were only observed no longer count: each charger goes on from the last command that
 * was published, and gets the level that holds for it now.
 */
export function endObserving(
  state: ControlState,
  period: ObservePeriod,
  by: string,
  why: string,
  now: Instant,
): StageResult {
  state.mode.end();
  // A command that is removed or replaced meanwhile does not disturb the walk.
  for (const record of state.commands.values()) {
    const sent = reallySent(record);
    if (sent === null) state.commands.forget(record.command.charger);
    else if (sent !== record) state.commands.record(sent);
  }
  state.ramp?.recall(state.commands.values(), state.chargers, now);
  const begun = `which began ${state.wallClock(period.since)} by ${period.by}`;
  const ended = `mode ${state.mode.current}: observe, ${begun}, ended${by === ITSELF ? "" : ` by ${by}`}: ${why}`;
  return {
    changes: [
      { kind: "observePeriod", period: null },
      modeRow(now, ended, { mode: state.mode.current, by, reason: why, since: iso(period.since) }),
    ],
    reevaluations: [...state.chargers.keys()].map((charger) => {
      const last = state.commands.get(charger);
      return { charger, reassert: last !== undefined && isLimiting(last) };
    }),
  };
}

/** Handles the passage of time, and a step of the clock by `jump` ms. Null: the mode stays. */
export function advanceMode(state: ControlState, jump: number, now: Instant): StageResult | null {
  const { period } = state.mode;
  const capped = period === null || jump >= 0 ? period : cappedAfterJump(period, -jump);
  const isCapped = capped !== null && capped !== period;
  if (isCapped) state.mode.begin(capped);
  const due = state.mode.due(now);
  if (due !== null) {
    const why = due.until <= due.cap ? "its time has come" : "it has lasted for a day";
    return endObserving(state, due, ITSELF, why, now);
  }
  return isCapped ? { changes: [{ kind: "observePeriod", period: capped }], reevaluations: [] } : null;
}

const modeRow = (at: Instant, message: string, facts: Readonly<Record<string, Json>>): Change =>
  auditRow("operator", at, message, { facts });
