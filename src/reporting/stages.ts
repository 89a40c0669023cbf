import { targeting } from "../control/schedule/targeting.ts";
import type { ControlState } from "../control/state.ts";
import type { Change } from "../domain/changes.ts";
import type { PostAnswer, ReportObligation, ReportRecord } from "../domain/report.ts";
import {
  after,
  type Instant,
  instant,
  later,
  type Millis,
  millis,
  minutes,
  seconds,
} from "../domain/units.ts";
import { composedRow, obligationRows, resentRow, triedRow } from "./auditRows.ts";
import { compose, type Composed } from "./compose.ts";
import { type ReportSchedule, type Upcoming, edgesWithin, takeDue } from "./obligations.ts";
import {
  Outbox,
  recordOf,
  firstBy,
  aboutEvent,
  afterPost,
  dueAt,
  isCommonTrouble,
  pauseAfter,
  resent,
} from "./outbox.ts";
import type { ReportOutcome, ReportPorts, ReportRules } from "./ports.ts";
import {
  type ScheduleContext,
  issue,
  neededWhole,
  scheduleChangedEvents,
  restoreSchedule,
} from "./reportSchedule.ts";
import { messageOf } from "../platform/errors.ts";

/** Telemetry may be late. The edges near now are computed again every minute. */
const EDGES_BACK = minutes(10);
const EDGES_AHEAD = minutes(2);
const EDGES_HOLD = minutes(1);
/** Wait after a failed commit. */
const COMMIT_RETRY = seconds(5);
/** New starts, and with them reports, are held no longer than this after the start of the process. */
const SETTLING = minutes(5);
/**
 * Longest wait for a clock that is ahead to be corrected: an early report cannot be taken back. After that our clock is
 * believed, as for new starts. The partner's may be the wrong one.
 */
const LONGEST_AHEAD = minutes(5);
/** Interval of checks while reports are held. */
const HELD_LOOK = seconds(1);
const TOO_LATE = "a report was due, and nothing ran, for longer than reports are tried";
const LONG_AGO = millis(-Infinity);
/** Changed events that are read and scheduled together. */
const PART = 500;

/** Stages of reporting. Each does its part on the schedule and stores the result. */
export function reportStages(
  schedule: ReportSchedule,
  state: ControlState,
  rules: ReportRules,
  ports: ReportPorts,
) {
  const { settings, giveUpAfter, enabled } = rules;
  // Monotonic clock: a wall clock that moves back must not stop reports.
  /** No report is composed before this time: a commit has failed. Null: none has. */
  let pausedUntil: Millis | null = null;
  /** The schedule could not be restored after a failed commit. Until it is, the obligations are unknown. */
  let needsRestore = false;
  const settledBy = millis(ports.monotonic() + SETTLING);
  /** Monotonic time since when our clock is ahead of the partner's. Null: it is not. */
  let aheadSince: Millis | null = null;
  /** No report is sent before this time: the endpoint failed, or asked us to wait. */
  let closedUntil = LONG_AGO;
  let failures = 0;
  const outbox = new Outbox(schedule.outbox, ports);
  /** Cached interval edges and the time of their computation. */
  let edges: { readonly at: Instant; readonly near: readonly Instant[] } | null = null;

  const context: Omit<ScheduleContext, "whole"> = {
    settings,
    enabled,
    concernsUs: ({ event }) => targeting(event, state.expansion).vehicles.size > 0,
  };

  /** Converts a monotonic time to the wall clock as it is now. */
  const onWall = (tick: Millis): Instant => after(ports.now(), millis(Math.ceil(tick - ports.monotonic())));

  /** Lead of our clock, while it may still be corrected. */
  const ahead = (): Millis => {
    const by = ports.ahead();
    aheadSince = by > 0 ? (aheadSince ?? ports.monotonic()) : null;
    return aheadSince === null || ports.monotonic() - aheadSince > LONGEST_AHEAD ? millis(0) : by;
  };

  /** Latest due time of reports to compose now. */
  const dueBy = (): Instant => instant(ports.now() - ahead());

  const remember = (obligations: readonly ReportObligation[], now: Instant): readonly Change[] =>
    obligations.flatMap((obligation) => {
      if (obligation.state === "flagged") ports.counted("flagged");
      return [{ kind: "duty", duty: obligation } as const, ...obligationRows(obligation, now)];
    });

  /** As for new starts, the partner is asked first: its answer confirms or corrects our clock. */
  const mayCompose = (): boolean => ports.monotonic() >= settledBy || state.barTo("start", null) === null;

  /** Schedules the changed events. Those that are over are read in parts: there may be very many. */
  const scheduleChanges = async (): Promise<void> => {
    const changed = state.feed.forReports.takeAll();
    for (let from = 0; from < changed.length; from += PART) {
      const part = changed.slice(from, from + PART);
      await state.known.withWhole(
        () => neededWhole(schedule, state.known, part),
        (read) => {
          const whole: ScheduleContext["whole"] = (summary) => read.get(summary) ?? null;
          const due = scheduleChangedEvents(schedule, state.known, part, { ...context, whole });
          ports.write(remember(due, ports.now()));
          edges = null;
        },
      );
    }
  };

  const edgesNear = (now: Instant): readonly Instant[] => {
    const isFresh = edges !== null && edges.at <= now && now < after(edges.at, EDGES_HOLD);
    if (edges !== null && isFresh) return edges.near;
    const near = edgesWithin(schedule, { from: instant(now - EDGES_BACK), until: after(now, EDGES_AHEAD) });
    edges = { at: now, near };
    return near;
  };

  const fill = async (upcoming: Upcoming): Promise<Filled | string> => {
    try {
      const composed = await compose(state, upcoming, settings, ports);
      return { ...composed, body: ports.spell(composed.report) };
    } catch (error) {
      // A bug, or a disk that cannot be read: this report is lost, the others are not.
      return `it could not be composed: ${messageOf(error)}`;
    }
  };

  /** Restores the schedule after a failed commit. */
  const restoreAfterFailedCommit = async (): Promise<void> => {
    pausedUntil = millis(ports.monotonic() + COMMIT_RETRY);
    try {
      restoreSchedule(schedule, await ports.owed(), enabled);
      outbox.restoreUnstored();
      needsRestore = false;
    } catch {
      needsRestore = true;
    }
    for (const id of state.known.keys()) state.feed.forReports.add(id);
  };

  /** False: the commit failed, and the schedule was restored. */
  const composeOne = async (key: string): Promise<boolean> => {
    const upcoming = schedule.upcoming.get(key);
    if (upcoming === undefined) return true;
    if (upcoming.window.due > dueBy()) {
      // The clock was set back while another was composed.
      schedule.due.push(upcoming.window.due, key);
      return true;
    }
    const isTooLate = after(upcoming.window.due, millis(giveUpAfter + ports.ahead())) < ports.now();
    const composed = isTooLate ? TOO_LATE : await fill(upcoming);
    await scheduleChanges();
    // A newer revision, or a withdrawal, came in the meantime.
    if (schedule.upcoming.get(key) !== upcoming) return true;
    const now = ports.now();
    const failed = typeof composed === "string" ? composed : null;
    const record = typeof composed === "string" ? null : recordOf(upcoming, composed, now);
    const obligation = issue(schedule, key, upcoming, failed, settings);
    edges = null;
    if (typeof composed !== "string" && record !== null) {
      const { body } = composed;
      ports.write([{ kind: "report", record, body }, composedRow(record, now, ports.wallClock)]);
    }
    ports.write(remember(obligation === null ? [] : [obligation], now));
    const { ok } = await ports.committed();
    if (!ok) {
      await restoreAfterFailedCommit();
      return false;
    }
    if (record === null) return true;
    schedule.outbox.set(record.name, record);
    ports.counted("composed");
    return true;
  };

  const nextToSend = (): ReportRecord | undefined => {
    if (!enabled || ports.monotonic() < closedUntil) return undefined;
    const now = ports.now();
    return firstBy(schedule.outbox.values(), now, now);
  };

  const bodyOf = async (
    name: string,
  ): Promise<PostAnswer | { readonly kind: "read"; readonly text: string }> => {
    try {
      const text = await ports.body(name);
      return text === null ? LOST : { kind: "read", text };
    } catch (error) {
      // The file exists and may be readable at the next attempt.
      return { kind: "silent", reason: `its body could not be read: ${messageOf(error)}`, retryAfter: null };
    }
  };

  const settle = (name: string, given: PostAnswer): void => {
    const record = schedule.outbox.get(name);
    if (record === undefined) return;
    const answer = aboutEvent(given, state.known.get(record.event));
    const [now, longest] = [ports.now(), millis(giveUpAfter + ports.ahead())];
    const next = afterPost(record, answer, longest, now, ports.random());
    outbox.update(next, triedRow(record, next, now));
    failures = isCommonTrouble(answer) ? failures + 1 : 0;
    closedUntil =
      failures > 0 ? millis(ports.monotonic() + pauseAfter(answer, failures, ports.random())) : LONG_AGO;
    ports.counted(outcomeOf(next));
  };

  return {
    /** Interval edges near now of the planned reports. */
    edges: (): readonly Instant[] => edgesNear(ports.now()),

    /** Time of the next report to compose. */
    nextReport: (): Instant | undefined => {
      // A schedule that is being restored has no due times.
      if (pausedUntil !== null) return onWall(pausedUntil);
      const due = schedule.due.next();
      if (due === undefined) return undefined;
      return mayCompose() && dueBy() >= ports.now() ? due : later(due, after(ports.now(), HELD_LOOK));
    },

    /** Time of the next report to send. */
    nextTry: (): Instant | undefined => {
      if (!enabled) return undefined;
      const now = ports.now();
      const first = firstBy(schedule.outbox.values(), now, instant(Infinity));
      return first === undefined ? undefined : later(dueAt(first, now), onWall(closedUntil));
    },

    /** Composes the reports that are due. Each is committed before it may be sent. */
    async compose(): Promise<void> {
      if (pausedUntil !== null && ports.monotonic() < pausedUntil) return;
      pausedUntil = null;
      if (needsRestore) await restoreAfterFailedCommit();
      if (needsRestore) return;
      await scheduleChanges();
      if (!mayCompose()) return;
      for (let due = takeDue(schedule, dueBy()); due.length > 0; due = takeDue(schedule, dueBy()))
        for (const key of due) if (!(await composeOne(key))) return;
    },

    /** Sends the reports that are due, until the endpoint fails. */
    async send(): Promise<void> {
      for (let record = nextToSend(); record !== undefined; record = nextToSend()) {
        const body = await bodyOf(record.name);
        settle(record.name, body.kind === "read" ? await ports.post(body.text) : body);
      }
    },

    /** Sends one report again now, for an operator. */
    resend(record: ReportRecord): void {
      const now = ports.now();
      const again = resent(record, now);
      outbox.update(again, [resentRow(again, now)]);
      [closedUntil, failures] = [LONG_AGO, 0];
    },
  };
}

/** A composed report with its body in the partner's format. */
interface Filled extends Composed {
  readonly body: string;
}

const LOST: PostAnswer = {
  kind: "answered",
  status: 400,
  words: "the stored body is gone, or was changed on the disk",
  retryAfter: null,
};

function outcomeOf({ state, nextTry }: ReportRecord): ReportOutcome {
  if (state === "sent") return "sent";
  return nextTry === null ? "flagged" : "retried";
}
