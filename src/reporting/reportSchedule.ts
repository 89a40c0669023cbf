import { isSameState } from "../control/ingest/summary.ts";
import {
  type EventSummary,
  type KnownEvent,
  type Revision,
  type TrackedEvent,
  askPrint,
  MOST_DESCRIPTORS,
} from "../domain/event.ts";
import { obligationKey, type ReportObligation, type ReportRecord } from "../domain/report.ts";
import type { EventId } from "../domain/units.ts";
import {
  type Upcoming,
  type ReportSchedule,
  obligationsByEvent,
  EVERY_DESCRIPTOR,
  forDescriptor,
  newObligation,
  isSettled,
  openObligations,
  withoutRevision,
} from "./obligations.ts";
import { afterWithdrawal, reportPlan } from "./plan.ts";
import type { ReportSettings } from "./settings.ts";

/** Reason while reports are disabled. Obligations with it are scheduled again once they are enabled. */
const SWITCHED_OFF = "reports are switched off";
const ANSWERED = "what it asks for now was asked after its reports had gone out";
/** Reason where no target is ours. The configuration may add such a vehicle later. */
const NOT_OURS = "none of its targets is a vehicle of this site";

/** Restores the schedule from disk. Nothing is due before the events have been scheduled. */
export function restoreSchedule(
  schedule: ReportSchedule,
  stored: { readonly duties: readonly ReportObligation[]; readonly outbox: readonly ReportRecord[] },
  enabled: boolean,
): void {
  for (const part of [schedule.seen, schedule.obligations, schedule.upcoming, schedule.due, schedule.outbox])
    part.clear();
  for (const obligation of stored.duties)
    if (!(enabled && obligation.reason === SWITCHED_OFF))
      schedule.obligations.set(obligationKey(obligation), withoutRevision(obligation));
  for (const record of stored.outbox) schedule.outbox.set(record.name, record);
}

/** Context for scheduling the reports of an event. */
export interface ScheduleContext {
  readonly settings: ReportSettings;
  readonly enabled: boolean;
  /** True if any of its targets is a vehicle of this site. */
  readonly concernsUs: (revision: Revision) => boolean;
  /** The whole event of a summary that `needsWhole` named. Null: it cannot be read. */
  readonly whole: (summary: EventSummary) => KnownEvent | null;
}

/** Summaries whose whole events are needed to schedule these changes. */
export function* neededWhole(
  schedule: ReportSchedule,
  events: ReadonlyMap<EventId, TrackedEvent>,
  changed: Iterable<EventId>,
): Generator<EventSummary> {
  for (const id of changed) {
    const known = events.get(id);
    if (known?.kind === "over" && needsWhole(schedule, known)) yield known;
  }
}

/** False: an event seen before was scheduled while it was open, or all its reports are settled. */
function needsWhole({ seen, obligations }: ReportSchedule, tracked: EventSummary): boolean {
  const before = seen.get(tracked.id);
  return (before === undefined || !isSameState(before, tracked)) && !isSettled(obligations, tracked);
}

/**
 * Schedules events that have changed since the last call. Answers the obligations to store. An unchanged event costs
 * nothing.
 */
export function scheduleChangedEvents(
  schedule: ReportSchedule,
  events: ReadonlyMap<EventId, TrackedEvent>,
  changed: Iterable<EventId>,
  context: ScheduleContext,
): readonly ReportObligation[] {
  const obligations: ReportObligation[] = [];
  for (const id of changed) {
    const known = events.get(id);
    if (known === undefined) forget(schedule, id);
    else obligations.push(...scheduleEvent(schedule, known, context));
  }
  return obligations;
}

function scheduleEvent(
  schedule: ReportSchedule,
  tracked: TrackedEvent,
  context: ScheduleContext,
): readonly ReportObligation[] {
  const before = schedule.seen.get(tracked.id);
  if (before === tracked) return [];
  const isNeeded = tracked.kind !== "over" || needsWhole(schedule, tracked);
  schedule.seen.set(tracked.id, tracked);
  if (tracked.kind !== "over") return scheduleWholeEvent(schedule, tracked, before, context);
  if (!isNeeded) return [];
  const known = context.whole(tracked);
  return known === null
    ? flagUnreadable(schedule, tracked)
    : scheduleWholeEvent(schedule, known, before, context);
}

const flagUnreadable = (schedule: ReportSchedule, known: EventSummary): readonly ReportObligation[] =>
  openObligations(schedule.obligations, known).map((obligation) =>
    close(schedule, obligation, "flagged", "the stored event cannot be read"),
  );

function scheduleWholeEvent(
  schedule: ReportSchedule,
  known: KnownEvent,
  before: TrackedEvent | undefined,
  context: ScheduleContext,
): readonly ReportObligation[] {
  try {
    const after = known.kind === "live" ? obligationsOf(known) : withdrawn(schedule, known, before);
    return [
      ...after.flatMap((obligation) => scheduleObligation(schedule, obligation, known, before, context)),
      ...(known.kind === "live" ? dropped(schedule, known) : []),
    ];
  } catch (error) {
    // A bug that one event reveals must not stop the process at every start, nor lose its reports in silence.
    const reason = `a bug: this program cannot plan it (${String(error)})`;
    return openObligations(schedule.obligations, known).map((obligation) =>
      close(schedule, obligation, "flagged", reason),
    );
  }
}

/** An obligation for each descriptor. Those beyond the cap share one. */
const obligationsOf = (known: KnownEvent & { kind: "live" }): readonly ReportObligation[] =>
  EVERY_DESCRIPTOR.slice(0, known.revision.event.reports.length).map((descriptor) =>
    newObligation(known, descriptor),
  );

/** Open obligations of a withdrawn event, with its last revision. */
function withdrawn(
  schedule: ReportSchedule,
  known: KnownEvent & { kind: "withdrawn" },
  before: TrackedEvent | undefined,
): readonly ReportObligation[] {
  const at = known.receivedAt;
  const revision =
    before?.kind === "live"
      ? before.revision
      : known.endings.findLast((ending) => ending.at === at)?.revision;
  return openObligations(schedule.obligations, known).map((obligation) => {
    // The revision of an event that is over is kept only with its planned report.
    const last = revision ?? schedule.upcoming.get(obligationKey(obligation))?.revision;
    const ending = last === undefined ? null : forDescriptor({ revision: last, at }, obligation.descriptor);
    return { ...obligation, withdrawn: obligation.withdrawn ?? ending };
  });
}

function scheduleObligation(
  schedule: ReportSchedule,
  obligation: ReportObligation,
  known: KnownEvent,
  was: TrackedEvent | undefined,
  context: ScheduleContext,
): readonly ReportObligation[] {
  const key = obligationKey(obligation);
  const before = schedule.obligations.get(key);
  const isSame =
    before?.receivedAt === obligation.receivedAt &&
    known.kind === "live" &&
    !(before.reason === NOT_OURS && context.concernsUs(known.revision));
  if (isSame && before.state !== "open") return [];
  const next = isSame ? before : { ...obligation, issued: before?.issued ?? null };
  const flag = (reason: string): readonly ReportObligation[] => [close(schedule, next, "flagged", reason)];
  const revision = known.kind === "live" ? known.revision : next.withdrawn?.revision;
  if (revision === undefined) return flag("the event was withdrawn");
  if (!context.enabled) return flag(SWITCHED_OFF);
  const beyond =
    (known.kind === "live" ? revision.event.reports.length : known.descriptors) - MOST_DESCRIPTORS;
  if (next.descriptor >= MOST_DESCRIPTORS) return flag(`${beyond} report descriptors too many`);
  if (!context.concernsUs(revision)) return flag(NOT_OURS);
  schedule.obligations.set(key, next);
  const ended = planNext(schedule, next, revision, context.settings);
  if (ended?.state === "done" && asksOtherwise(next.descriptor, known, was)) return flag(ANSWERED);
  // A withdrawn event cannot be read any more. Its last revision is stored with the obligation.
  return ended === null ? (next.withdrawn === null ? [] : [next]) : [ended];
}

/** True if the descriptor asks for another quantity or time than in the revision seen before. */
function asksOtherwise(descriptor: number, known: KnownEvent, was: TrackedEvent | undefined): boolean {
  if (known.kind !== "live" || was === undefined || was.kind === "withdrawn") return false;
  if (was.kind === "over" && was.was === "withdrawn") return false;
  const before = was.kind === "over" ? was.asks[descriptor] : askPrint(was.revision, descriptor);
  return askPrint(known.revision, descriptor) !== before;
}

/** Obligations of descriptors that the new revision no longer has. */
function dropped(
  schedule: ReportSchedule,
  known: KnownEvent & { kind: "live" },
): readonly ReportObligation[] {
  if (known.descriptors === known.revision.event.reports.length) return [];
  return openObligations(schedule.obligations, known)
    .filter(({ descriptor }) => descriptor >= known.revision.event.reports.length)
    .map((obligation) => close(schedule, obligation, "flagged", "the event does not ask for it any more"));
}

/** Forgets the obligations of an event that is no longer stored. */
function forget(schedule: ReportSchedule, id: EventId): void {
  schedule.seen.delete(id);
  for (const obligation of obligationsByEvent(schedule.obligations, id)) {
    schedule.obligations.delete(obligationKey(obligation));
    schedule.upcoming.delete(obligationKey(obligation));
  }
}

/** Events with a report that is not composed or not sent yet. Retention keeps them: no report is lost in silence. */
export const reportedOn = (
  { seen, obligations, outbox }: ReportSchedule,
  events: ReadonlyMap<EventId, TrackedEvent>,
): ReadonlySet<EventId> =>
  new Set([
    ...[...events.values()]
      .filter((known) => known.descriptors > 0 && seen.get(known.id) !== known)
      .map(({ id }) => id),
    ...[...obligations.values()].filter(({ state }) => state === "open").map(({ event }) => event),
    ...[...outbox.values()].map(({ event }) => event),
  ]);

/** Plans the next report of an open obligation. Answers the obligation if none is left. */
function planNext(
  schedule: ReportSchedule,
  obligation: ReportObligation,
  revision: Revision,
  settings: ReportSettings,
): ReportObligation | null {
  const { descriptor, receivedAt, issued, withdrawn, reason } = obligation;
  const { event, start } = revision;
  const plan = reportPlan({ event, start, receivedAt, descriptor, issued }, settings);
  const windows = withdrawn === null ? plan.windows : afterWithdrawal(plan.windows, withdrawn.at, settings);
  // An event cut short is reported once, up to its end.
  const window = windows.find(({ moment }) => issued === null || moment > issued.moment);
  if (window !== undefined) {
    schedule.upcoming.set(obligationKey(obligation), { window, revision });
    schedule.due.push(window.due, obligationKey(obligation));
    return null;
  }
  // Every report was issued before the withdrawal: none is missing.
  const isComplete = issued !== null && plan.windows.length === 0;
  const why = reason ?? (withdrawn !== null && !isComplete ? "the event was withdrawn" : null);
  if (why !== null) return close(schedule, obligation, "flagged", why);
  if (issued !== null) return close(schedule, obligation, "done", null);
  return close(schedule, obligation, "flagged", plan.flags.join("; ") || "there is nothing to report");
}

function close(
  schedule: ReportSchedule,
  obligation: ReportObligation,
  state: "done" | "flagged",
  reason: string | null,
): ReportObligation {
  const closed = withoutRevision({ ...obligation, state, reason });
  schedule.obligations.set(obligationKey(obligation), closed);
  schedule.upcoming.delete(obligationKey(obligation));
  return closed;
}

/**
 * Records that a report was issued, or was dropped for `reason`, and plans the next one. Answers the obligation to
 * store.
 */
export function issue(
  schedule: ReportSchedule,
  key: string,
  { window, revision }: Upcoming,
  reason: string | null,
  settings: ReportSettings,
): ReportObligation | null {
  const obligation = schedule.obligations.get(key);
  if (obligation === undefined) return null;
  const { k, moment } = window;
  const next: ReportObligation = {
    ...obligation,
    issued: { k, moment },
    reason: reason ?? obligation.reason,
  };
  schedule.obligations.set(key, next);
  schedule.upcoming.delete(key);
  return planNext(schedule, next, revision, settings) ?? next;
}
