import { targeting } from "../control/schedule/targeting.ts";
import type { ControlState } from "../control/state.ts";
import type { Change } from "../domain/changes.ts";
import type { ReportObligation } from "../domain/report.ts";
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
import { messageOf } from "../platform/text.ts";
import { composedRow, obligationRows } from "./auditRows.ts";
import { compose, type Composed } from "./compose.ts";
import { type ReportSchedule, type Upcoming, edgesWithin, takeDue } from "./obligations.ts";
import { type Outbox, recordOf } from "./outbox.ts";
import type { ReportPorts, ReportRules } from "./ports.ts";
import {
  type ScheduleContext,
  issue,
  neededWhole,
  scheduleChangedEvents,
  restoreSchedule,
} from "./reportSchedule.ts";

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
const HELD_CHECK_EVERY = seconds(1);
const TOO_LATE = "a report was due, and nothing ran, for longer than reports are tried";
/** Changed events that are read and scheduled together. */
const PART = 500;

/** A composed report with its body in the partner's format. */
interface SerializedReport extends Composed {
  readonly body: string;
}

/** Parts that a composer uses. */
interface ComposerParts {
  readonly schedule: ReportSchedule;
  readonly state: ControlState;
  readonly outbox: Outbox;
  readonly rules: ReportRules;
  readonly ports: ReportPorts;
}

/**
 * Composes the reports that are due and commits each. Times of waits are of the monotonic clock: a wall clock that
 * moves back must not stop reports.
 */
export class ReportComposer {
  readonly #schedule: ReportSchedule;
  readonly #state: ControlState;
  readonly #outbox: Outbox;
  readonly #rules: ReportRules;
  readonly #ports: ReportPorts;
  readonly #context: Omit<ScheduleContext, "whole">;
  /** Reports are composed from this time on, even if the partner was not reached. */
  readonly #settledBy: Millis;
  /** No report is composed before this time: a commit has failed. Null: none has. */
  #pausedUntil: Millis | null = null;
  /** The schedule could not be restored after a failed commit. Until it is, the obligations are unknown. */
  #needsRestore = false;
  /** Time since when our clock is ahead of the partner's. Null: it is not. */
  #aheadSince: Millis | null = null;
  /** Cached interval edges and the time of their computation. Null: they have changed. */
  #edges: { readonly at: Instant; readonly near: readonly Instant[] } | null = null;

  constructor({ schedule, state, outbox, rules, ports }: ComposerParts) {
    this.#schedule = schedule;
    this.#state = state;
    this.#outbox = outbox;
    this.#rules = rules;
    this.#ports = ports;
    this.#context = {
      settings: rules.settings,
      enabled: rules.enabled,
      concernsUs: ({ event }) => targeting(event, state.expansion).vehicles.size > 0,
    };
    this.#settledBy = millis(ports.monotonic() + SETTLING);
  }

  /** Interval edges near now of the planned reports. */
  edges(): readonly Instant[] {
    const now = this.#ports.now();
    const cached = this.#edges;
    if (cached !== null && cached.at <= now && now < after(cached.at, EDGES_HOLD)) return cached.near;
    const near = edgesWithin(this.#schedule, {
      from: instant(now - EDGES_BACK),
      until: after(now, EDGES_AHEAD),
    });
    this.#edges = { at: now, near };
    return near;
  }

  /** Time of the next report to compose. */
  next(): Instant | undefined {
    const now = this.#ports.now();
    // A schedule that is being restored has no due times.
    if (this.#pausedUntil !== null)
      return after(now, millis(Math.ceil(this.#pausedUntil - this.#ports.monotonic())));
    const due = this.#schedule.due.next();
    if (due === undefined) return undefined;
    return this.#mayCompose() && this.#dueBy() >= now ? due : later(due, after(now, HELD_CHECK_EVERY));
  }

  /** Composes the reports that are due. Each is committed before it may be sent. */
  async compose(): Promise<void> {
    if (this.#pausedUntil !== null && this.#ports.monotonic() < this.#pausedUntil) return;
    this.#pausedUntil = null;
    if (this.#needsRestore) await this.#restoreAfterFailedCommit();
    if (this.#needsRestore) return;
    await this.#scheduleChanges();
    if (!this.#mayCompose()) return;
    const due = (): readonly string[] => takeDue(this.#schedule, this.#dueBy());
    for (let keys = due(); keys.length > 0; keys = due())
      for (const key of keys) if (!(await this.#composeOne(key))) return;
  }

  /** The partner is asked first: its answer confirms or corrects our clock. New starts wait for it too. */
  #mayCompose(): boolean {
    return this.#ports.monotonic() >= this.#settledBy || this.#state.barTo("start", null) === null;
  }

  /** Latest due time of reports to compose now. While our clock may still be corrected, its lead does not count. */
  #dueBy(): Instant {
    const { monotonic, now } = this.#ports;
    const lead = this.#ports.ahead();
    this.#aheadSince = lead > 0 ? (this.#aheadSince ?? monotonic()) : null;
    const mayBeCorrected = this.#aheadSince !== null && monotonic() - this.#aheadSince <= LONGEST_AHEAD;
    return mayBeCorrected ? instant(now() - lead) : now();
  }

  /** Schedules the changed events. Those that are over are read in parts: there may be very many. */
  async #scheduleChanges(): Promise<void> {
    const { known, feed } = this.#state;
    const changed = feed.forReports.takeAll();
    for (let from = 0; from < changed.length; from += PART) {
      const part = changed.slice(from, from + PART);
      await known.withWhole(
        () => neededWhole(this.#schedule, known, part),
        (read) => {
          const whole: ScheduleContext["whole"] = (summary) => read.get(summary) ?? null;
          this.#write(scheduleChangedEvents(this.#schedule, known, part, { ...this.#context, whole }));
          this.#edges = null;
        },
      );
    }
  }

  /** False: the commit failed, and the schedule was restored. */
  async #composeOne(key: string): Promise<boolean> {
    const upcoming = this.#schedule.upcoming.get(key);
    if (upcoming === undefined) return true;
    if (upcoming.window.due > this.#dueBy()) {
      // The clock was set back while another was composed.
      this.#schedule.due.push(upcoming.window.due, key);
      return true;
    }
    const composed = this.#isTooLate(upcoming) ? TOO_LATE : await this.#fill(upcoming);
    await this.#scheduleChanges();
    // A newer revision, or a withdrawal, came in the meantime.
    if (this.#schedule.upcoming.get(key) !== upcoming) return true;
    return this.#commit(key, upcoming, composed);
  }

  #isTooLate({ window }: Upcoming): boolean {
    const { now, ahead } = this.#ports;
    return after(window.due, millis(this.#rules.giveUpAfter + ahead())) < now();
  }

  /** Answers the reason if the report could not be composed. */
  async #fill(upcoming: Upcoming): Promise<SerializedReport | string> {
    try {
      const composed = await compose(this.#state, upcoming, this.#rules.settings, this.#ports);
      return { ...composed, body: this.#ports.serialize(composed.report) };
    } catch (error) {
      // A bug, or a disk that cannot be read: this report is lost, the others are not.
      return `it could not be composed: ${messageOf(error)}`;
    }
  }

  /** Commits a report, or the reason why there is none. False: the commit failed, and the schedule was restored. */
  async #commit(key: string, upcoming: Upcoming, composed: SerializedReport | string): Promise<boolean> {
    const at = this.#ports.now();
    const failed = typeof composed === "string" ? composed : null;
    const obligation = issue(this.#schedule, key, upcoming, failed, this.#rules.settings);
    this.#edges = null;
    const record = typeof composed === "string" ? null : recordOf(upcoming, composed, at);
    if (typeof composed !== "string" && record !== null)
      this.#ports.write([
        { kind: "report", record, body: composed.body },
        composedRow(record, at, this.#ports.wallClock),
      ]);
    this.#write(obligation === null ? [] : [obligation]);
    const { ok } = await this.#ports.committed();
    if (!ok) {
      await this.#restoreAfterFailedCommit();
      return false;
    }
    if (record === null) return true;
    this.#outbox.add(record);
    this.#ports.counted("composed");
    return true;
  }

  /** Writes obligations that have changed, with their audit rows. */
  #write(obligations: readonly ReportObligation[]): void {
    const now = this.#ports.now();
    const changes = obligations.flatMap((obligation): readonly Change[] => {
      if (obligation.state === "flagged") this.#ports.counted("flagged");
      return [{ kind: "duty", duty: obligation }, ...obligationRows(obligation, now)];
    });
    this.#ports.write(changes);
  }

  /** Restores the schedule after a failed commit. */
  async #restoreAfterFailedCommit(): Promise<void> {
    this.#pausedUntil = millis(this.#ports.monotonic() + COMMIT_RETRY);
    try {
      restoreSchedule(this.#schedule, await this.#ports.owed(), this.#rules.enabled);
      this.#outbox.restoreUnstored();
      this.#needsRestore = false;
    } catch {
      this.#needsRestore = true;
    }
    const { known, feed } = this.#state;
    for (const id of known.keys()) feed.forReports.add(id);
  }
}
