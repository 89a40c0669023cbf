import {
  type Revision,
  type TrackedEvent,
  type ReportDescriptor,
  type Ending,
  type EventSummary,
  MOST_DESCRIPTORS,
} from "../domain/event.ts";
import {
  type ReportWindow,
  type ReportObligation,
  type ReportRecord,
  obligationKey,
} from "../domain/report.ts";
import type { Instant, Window, EventId } from "../domain/units.ts";
import { DueQueue, firstWhere } from "../platform/collections.ts";

/** By `obligationKey`. */
type Obligations = ReadonlyMap<string, ReportObligation>;

/** The last index stands for all descriptors beyond the cap. */
export const EVERY_DESCRIPTOR = Array.from({ length: MOST_DESCRIPTORS + 1 }, (_, descriptor) => descriptor);

export const newObligation = ({ id, receivedAt }: TrackedEvent, descriptor: number): ReportObligation => ({
  event: id,
  descriptor,
  receivedAt,
  issued: null,
  withdrawn: null,
  state: "open",
  reason: null,
});

/**
 * Open obligations of an event, new ones included. An obligation is stored only once there is something to remember
 * about it.
 */
export const openObligations = (obligations: Obligations, known: TrackedEvent): readonly ReportObligation[] =>
  EVERY_DESCRIPTOR.flatMap((descriptor) => {
    const obligation = obligations.get(obligationKey({ event: known.id, descriptor }));
    if (obligation !== undefined) return obligation.state === "open" ? [obligation] : [];
    return descriptor < known.descriptors ? [newObligation(known, descriptor)] : [];
  });

/** Obligations of an event in any state. */
export const obligationsByEvent = (obligations: Obligations, event: EventId): readonly ReportObligation[] =>
  EVERY_DESCRIPTOR.flatMap((descriptor) => obligations.get(obligationKey({ event, descriptor })) ?? []);

/** True if every report descriptor of an event that is over has ended. */
export const isSettled = (
  obligations: Obligations,
  { id, was, receivedAt, descriptors }: EventSummary,
): boolean =>
  EVERY_DESCRIPTOR.slice(0, descriptors).every((descriptor) => {
    const obligation = obligations.get(obligationKey({ event: id, descriptor }));
    if (obligation === undefined || obligation.state === "open") return false;
    return was === "withdrawn" || obligation.receivedAt === receivedAt;
  });

/** Drops the last revision of a withdrawn event once no report needs it. */
export const withoutRevision = (obligation: ReportObligation): ReportObligation =>
  obligation.state === "open" || obligation.withdrawn === null
    ? obligation
    : { ...obligation, withdrawn: null };

/** Keeps this one descriptor, at its index. Each obligation is stored apart, and would repeat all others. */
export function forDescriptor({ revision, at }: Ending, descriptor: number): Ending {
  const own = revision.event.reports[descriptor];
  const reports: ReportDescriptor[] = [];
  if (own !== undefined) reports[descriptor] = own;
  return { revision: { ...revision, event: { ...revision.event, reports } }, at };
}

/** A report that is planned, and the revision that asks for it. */
export interface Upcoming {
  readonly window: ReportWindow;
  readonly revision: Revision;
}

/** Obligations to the partner. Derived from what is stored; the pipeline of reporting keeps it up to date. */
export interface ReportSchedule {
  /** Each event as it was when last scheduled. */
  readonly seen: Map<EventId, TrackedEvent>;
  /** By `obligationKey`, as `upcoming` and `due`. */
  readonly obligations: Map<string, ReportObligation>;
  /** Next report of each open obligation. */
  readonly upcoming: Map<string, Upcoming>;
  readonly due: DueQueue<string>;
  /** Reports with a next attempt, by name. */
  readonly outbox: Map<string, ReportRecord>;
}

export const reportSchedule = (): ReportSchedule => ({
  seen: new Map(),
  obligations: new Map(),
  upcoming: new Map(),
  due: new DueQueue(),
  outbox: new Map(),
});

/** Obligations with a report that is due. Each is named once, until its next report is planned. */
export const takeDue = (schedule: ReportSchedule, now: Instant): readonly string[] =>
  // Entries of replaced schedules are stale.
  [...schedule.due.due(now)].filter((key) => (schedule.upcoming.get(key)?.window.due ?? Infinity) <= now);

/** Interval edges of the planned reports in a window, in order. The register matters there. */
export function edgesWithin({ upcoming }: ReportSchedule, { from, until }: Window): readonly Instant[] {
  const edges = new Set<Instant>();
  for (const { window } of upcoming.values()) {
    // Nearly all of many thousand reports are about another time: their intervals are not walked.
    const first = firstWhere(window.intervals, ({ span }) => span.until >= from);
    const end = firstWhere(window.intervals, ({ span }) => span.from >= until);
    if (first >= end) continue;
    for (const { span } of window.intervals.slice(first, end))
      for (const edge of [span.from, span.until]) if (from <= edge && edge < until) edges.add(edge);
  }
  return [...edges].toSorted((a, b) => a - b);
}
