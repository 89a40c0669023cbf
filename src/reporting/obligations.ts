import type { Revision, TrackedEvent, ReportDescriptor, Ending, EventSummary } from "../domain/event.ts";
import { MOST_DESCRIPTORS } from "../domain/eventSummary.ts";
import {
  type ReportWindow,
  type ReportObligation,
  type ReportRecord,
  obligationKey,
} from "../domain/report.ts";
import type { EventId } from "../domain/units.ts";
import { DueQueue } from "../platform/dueQueue.ts";

/** By `dutyKey`. */
type Obligations = ReadonlyMap<string, ReportObligation>;

/** The last one stands for all beyond the most that are answered. */
export const EVERY_DESCRIPTOR = Array.from({ length: MOST_DESCRIPTORS + 1 }, (_, descriptor) => descriptor);

export const freshDuty = ({ id, receivedAt }: TrackedEvent, descriptor: number): ReportObligation => ({
  event: id,
  descriptor,
  receivedAt,
  issued: null,
  withdrawn: null,
  state: "open",
  reason: null,
});

/**
 * Of all that an event ever asked for: nothing is stored of a descriptor that was not looked at before the process
 * ended, or of which nothing had to be remembered until then.
 */
export const openDuties = (duties: Obligations, known: TrackedEvent): readonly ReportObligation[] =>
  EVERY_DESCRIPTOR.flatMap((descriptor) => {
    const duty = duties.get(obligationKey({ event: known.id, descriptor }));
    if (duty !== undefined) return duty.state === "open" ? [duty] : [];
    return descriptor < known.descriptors ? [freshDuty(known, descriptor)] : [];
  });

/** All duties of an event, whatever their state. */
export const obligationsByEvent = (duties: Obligations, event: EventId): readonly ReportObligation[] =>
  EVERY_DESCRIPTOR.flatMap((descriptor) => duties.get(obligationKey({ event, descriptor })) ?? []);

/** Whether each report descriptor of an event that is over has ended. */
export const isSettled = (duties: Obligations, { id, was, receivedAt, descriptors }: EventSummary): boolean =>
  EVERY_DESCRIPTOR.slice(0, descriptors).every((descriptor) => {
    const duty = duties.get(obligationKey({ event: id, descriptor }));
    if (duty === undefined || duty.state === "open") return false;
    return was === "withdrawn" || duty.receivedAt === receivedAt;
  });

/** The last revision of a withdrawn event is only needed while a report is still to be made of it. */
export const withoutRevision = (duty: ReportObligation): ReportObligation =>
  duty.state === "open" || duty.withdrawn === null ? duty : { ...duty, withdrawn: null };

/** With this one descriptor, in its place: each duty is stored apart, and would hold all the others as well. */
export function forDescriptor({ revision, at }: Ending, descriptor: number): Ending {
  const own = revision.event.reports[descriptor];
  const reports: ReportDescriptor[] = [];
  if (own !== undefined) reports[descriptor] = own;
  return { revision: { ...revision, event: { ...revision.event, reports } }, at };
}

/** One report that is due some day, of the revision that asks for it. */
export interface Upcoming {
  readonly window: ReportWindow;
  readonly revision: Revision;
}

/** What is owed to the partner: derived from what is stored, and kept up to date by the flow of reporting. */
export interface ReportSchedule {
  /** As each event was when it was looked at last. */
  readonly seen: Map<EventId, TrackedEvent>;
  /** By `dutyKey`, as all that follow. */
  readonly obligations: Map<string, ReportObligation>;
  /** The next report of each open duty. */
  readonly upcoming: Map<string, Upcoming>;
  readonly due: DueQueue<string>;
  /** By name: those with a next try. */
  readonly outbox: Map<string, ReportRecord>;
}

/** What is stored of it; everything else is found by looking at the events. */
export const reportSchedule = (): ReportSchedule => ({
  seen: new Map(),
  obligations: new Map(),
  upcoming: new Map(),
  due: new DueQueue(),
  outbox: new Map(),
});
