import { isSameState } from "../control/ingest/summary.ts";
import type { EventSummary, KnownEvent, Revision, TrackedEvent } from "../domain/event.ts";
import { askPrint, MOST_DESCRIPTORS } from "../domain/eventSummary.ts";
import { obligationKey, type ReportObligation, type ReportRecord } from "../domain/report.ts";
import type { EventId, Instant, Window } from "../domain/units.ts";
import {
  type Upcoming,
  type ReportSchedule,
  obligationsByEvent,
  EVERY_DESCRIPTOR,
  forDescriptor,
  freshDuty,
  isSettled,
  openDuties,
  withoutRevision,
} from "./obligations.ts";
import { afterWithdrawal, reportPlan } from "./plan.ts";
import type { ReportSettings } from "./settings.ts";

/** Why a descriptor is flagged where reports are switched off: reason enough to look again once they are not. */
const SWITCHED_OFF = "reports are switched off";
const ANSWERED = "what it asks for now was asked after its reports had gone out";
/** And why where it is a matter of no vehicle of ours: the configuration may know one of them later. */
const NOT_OURS = "none of its targets is a vehicle of this site";

/** Starts over from what is stored. Nothing is due before the events were looked at. */
export function restoreSchedule(
  desk: ReportSchedule,
  stored: { readonly duties: readonly ReportObligation[]; readonly outbox: readonly ReportRecord[] },
  enabled: boolean,
): void {
  for (const part of [desk.seen, desk.obligations, desk.upcoming, desk.due, desk.outbox]) part.clear();
  for (const duty of stored.duties)
    if (!(enabled && duty.reason === SWITCHED_OFF))
      desk.obligations.set(obligationKey(duty), withoutRevision(duty));
  for (const record of stored.outbox) desk.outbox.set(record.name, record);
}

/** What one look at an event changes. */
export interface ScheduleContext {
  readonly settings: ReportSettings;
  readonly enabled: boolean;
  /** Whether any of its targets is ours. */
  readonly concernsUs: (revision: Revision) => boolean;
  /** The whole of an event that memory has a summary of; null: it cannot be read. */
  readonly whole: (id: EventId) => KnownEvent | null;
}

/**
 * Takes in how those events are now that have changed since; answers the duties that ended or have to be remembered
 * because of it. One that is as it was costs nothing.
 */
export function scheduleChangedEvents(
  desk: ReportSchedule,
  events: ReadonlyMap<EventId, TrackedEvent>,
  changed: Iterable<EventId>,
  context: ScheduleContext,
): readonly ReportObligation[] {
  const duties: ReportObligation[] = [];
  for (const id of changed) {
    const known = events.get(id);
    if (known === undefined) forget(desk, id);
    else duties.push(...scheduleEvent(desk, known, context));
  }
  return duties;
}

function scheduleEvent(
  desk: ReportSchedule,
  tracked: TrackedEvent,
  context: ScheduleContext,
): readonly ReportObligation[] {
  const before = desk.seen.get(tracked.id);
  if (before === tracked) return [];
  desk.seen.set(tracked.id, tracked);
  if (tracked.kind !== "over") return scheduleWholeEvent(desk, tracked, before, context);
  // It was planned while it was open, or everything that it asked for has ended.
  if (before !== undefined && isSameState(before, tracked)) return [];
  if (isSettled(desk.obligations, tracked)) return [];
  const known = context.whole(tracked.id);
  return known === null ? flagUnreadable(desk, tracked) : scheduleWholeEvent(desk, known, before, context);
}

const flagUnreadable = (desk: ReportSchedule, known: EventSummary): readonly ReportObligation[] =>
  openDuties(desk.obligations, known).map((duty) =>
    close(desk, duty, "flagged", "the stored event cannot be read"),
  );

function scheduleWholeEvent(
  desk: ReportSchedule,
  known: KnownEvent,
  before: TrackedEvent | undefined,
  context: ScheduleContext,
): readonly ReportObligation[] {
  try {
    const after = known.kind === "live" ? obligationsOf(known) : withdrawn(desk, known, before);
    return [
      ...after.flatMap((duty) => takeUp(desk, duty, known, before, context)),
      ...(known.kind === "live" ? dropped(desk, known) : []),
    ];
  } catch (error) {
    // An event that brings out a bug must not end the process with every start (F15), nor its reports in silence (L3).
    const reason = `a bug: this program cannot plan it (${String(error)})`;
    return openDuties(desk.obligations, known).map((duty) => close(desk, duty, "flagged", reason));
  }
}

/** One duty for each descriptor; those beyond the most that are answered share one. */
const obligationsOf = (known: KnownEvent & { kind: "live" }): readonly ReportObligation[] =>
  EVERY_DESCRIPTOR.slice(0, known.revision.event.reports.length).map((descriptor) =>
    freshDuty(known, descriptor),
  );

/** The open duties of an event that is no more, with what it was. */
function withdrawn(
  desk: ReportSchedule,
  known: KnownEvent & { kind: "withdrawn" },
  before: TrackedEvent | undefined,
): readonly ReportObligation[] {
  const at = known.receivedAt;
  const revision =
    before?.kind === "live"
      ? before.revision
      : known.endings.findLast((ending) => ending.at === at)?.revision;
  return openDuties(desk.obligations, known).map((duty) => {
    // Of an event that was over the revision is only with what was planned.
    const last = revision ?? desk.upcoming.get(obligationKey(duty))?.revision;
    const ending = last === undefined ? null : forDescriptor({ revision: last, at }, duty.descriptor);
    return { ...duty, withdrawn: duty.withdrawn ?? ending };
  });
}

function takeUp(
  desk: ReportSchedule,
  duty: ReportObligation,
  known: KnownEvent,
  was: TrackedEvent | undefined,
  context: ScheduleContext,
): readonly ReportObligation[] {
  const key = obligationKey(duty);
  const before = desk.obligations.get(key);
  const isSame =
    before?.receivedAt === duty.receivedAt &&
    known.kind === "live" &&
    !(before.reason === NOT_OURS && context.concernsUs(known.revision));
  if (isSame && before.state !== "open") return [];
  const next = isSame ? before : { ...duty, issued: before?.issued ?? null };
  const flag = (reason: string): readonly ReportObligation[] => [close(desk, next, "flagged", reason)];
  const revision = known.kind === "live" ? known.revision : next.withdrawn?.revision;
  if (revision === undefined) return flag("the event was withdrawn");
  if (!context.enabled) return flag(SWITCHED_OFF);
  const beyond =
    (known.kind === "live" ? revision.event.reports.length : known.descriptors) - MOST_DESCRIPTORS;
  if (next.descriptor >= MOST_DESCRIPTORS) return flag(`${beyond} report descriptors too many`);
  if (!context.concernsUs(revision)) return flag(NOT_OURS);
  desk.obligations.set(key, next);
  const ended = planNext(desk, next, revision, context.settings);
  if (ended?.state === "done" && asksOtherwise(next.descriptor, known, was)) return flag(ANSWERED);
  // A withdrawn event is not to be had any more: what is left of it is remembered with the duty.
  return ended === null ? (next.withdrawn === null ? [] : [next]) : [ended];
}

/** Whether it asks for another thing, or of another time, than what was seen of it last. */
function asksOtherwise(descriptor: number, known: KnownEvent, was: TrackedEvent | undefined): boolean {
  if (known.kind !== "live" || was === undefined || was.kind === "withdrawn") return false;
  if (was.kind === "over" && was.was === "withdrawn") return false;
  const before = was.kind === "over" ? was.asks[descriptor] : askPrint(was.revision, descriptor);
  return askPrint(known.revision, descriptor) !== before;
}

/** Descriptors that the event had before, and has no more. */
function dropped(desk: ReportSchedule, known: KnownEvent & { kind: "live" }): readonly ReportObligation[] {
  if (known.descriptors === known.revision.event.reports.length) return [];
  return openDuties(desk.obligations, known)
    .filter(({ descriptor }) => descriptor >= known.revision.event.reports.length)
    .map((duty) => close(desk, duty, "flagged", "the event does not ask for it any more"));
}

/** An event that is not kept any more takes its duties with it. */
function forget(desk: ReportSchedule, id: EventId): void {
  desk.seen.delete(id);
  for (const duty of obligationsByEvent(desk.obligations, id)) {
    desk.obligations.delete(obligationKey(duty));
    desk.upcoming.delete(obligationKey(duty));
  }
}

/** The events that a report is still to be made of, or to be sent: forgotten before, they would end in silence (L3). */
export const reportedOn = (
  { seen, obligations: duties, outbox }: ReportSchedule,
  events: ReadonlyMap<EventId, TrackedEvent>,
): ReadonlySet<EventId> =>
  new Set([
    ...[...events.values()]
      .filter((known) => known.descriptors > 0 && seen.get(known.id) !== known)
      .map(({ id }) => id),
    ...[...duties.values()].filter(({ state }) => state === "open").map(({ event }) => event),
    ...[...outbox.values()].map(({ event }) => event),
  ]);

/** Finds the next report of an open duty; answers the duty where there is none any more. */
function planNext(
  desk: ReportSchedule,
  duty: ReportObligation,
  revision: Revision,
  settings: ReportSettings,
): ReportObligation | null {
  const { descriptor, receivedAt, issued, withdrawn, reason } = duty;
  const { event, start } = revision;
  const plan = reportPlan({ event, start, receivedAt, descriptor, issued }, settings);
  const windows = withdrawn === null ? plan.windows : afterWithdrawal(plan.windows, withdrawn.at, settings);
  // What was cut short is reported as far as it came, and that once.
  const window = windows.find(({ moment }) => issued === null || moment > issued.moment);
  if (window !== undefined) {
    desk.upcoming.set(obligationKey(duty), { window, revision });
    desk.due.push(window.due, obligationKey(duty));
    return null;
  }
  // Every report was handed over before the event was withdrawn: nothing is missing.
  const isComplete = issued !== null && plan.windows.length === 0;
  const why = reason ?? (withdrawn !== null && !isComplete ? "the event was withdrawn" : null);
  if (why !== null) return close(desk, duty, "flagged", why);
  if (issued !== null) return close(desk, duty, "done", null);
  return close(desk, duty, "flagged", plan.flags.join("; ") || "there is nothing to report");
}

function close(
  desk: ReportSchedule,
  duty: ReportObligation,
  state: "done" | "flagged",
  reason: string | null,
): ReportObligation {
  const closed = withoutRevision({ ...duty, state, reason });
  desk.obligations.set(obligationKey(duty), closed);
  desk.upcoming.delete(obligationKey(duty));
  return closed;
}

/** The duties with a report whose time has come. They are not named again until their next report is planned. */
export const takeDue = (desk: ReportSchedule, now: Instant): readonly string[] =>
  // Entries of schedules that were replaced mean nothing any more.
  [...desk.due.due(now)].filter((key) => (desk.upcoming.get(key)?.window.due ?? Infinity) <= now);

/** Where intervals of the reports to come begin and end: there it matters how a register stood. In order. */
export const edgesWithin = ({ upcoming }: ReportSchedule, { from, until }: Window): readonly Instant[] =>
  [
    ...new Set(
      [...upcoming.values()]
        .flatMap(({ window }) => window.intervals.flatMap(({ span }) => [span.from, span.until]))
        .filter((edge) => from <= edge && edge < until),
    ),
  ].toSorted((a, b) => a - b);

/**
 * The report of this duty was handed over, or for `reason` never will be; the next one is found. Answers the duty as
 * it is to be remembered.
 */
export function issue(
  desk: ReportSchedule,
  key: string,
  { window, revision }: Upcoming,
  reason: string | null,
  settings: ReportSettings,
): ReportObligation | null {
  const duty = desk.obligations.get(key);
  if (duty === undefined) return null;
  const { k, moment } = window;
  const next: ReportObligation = { ...duty, issued: { k, moment }, reason: reason ?? duty.reason };
  desk.obligations.set(key, next);
  desk.upcoming.delete(key);
  return planNext(desk, next, revision, settings) ?? next;
}
