import { type CoordinationEvent, MOST_DESCRIPTORS } from "../domain/event.ts";
import type { ReportInterval, ReportWindow, Issued } from "../domain/report.ts";
import { after, earlier, type Instant, later, type Millis } from "../domain/units.ts";
import { firstIndex } from "../platform/collections.ts";
import { type Grid, gridOf } from "./grid.ts";
import { wantedOf } from "./payload.ts";
import {
  type DescriptorParameters,
  descriptorParameters,
  isAcknowledgement,
  reportRanges,
} from "./ranges.ts";
import type { ReportSettings } from "./settings.ts";

/** Reports of one descriptor that are still to be made. */
export interface ReportPlan {
  /** In the order in which they are due. */
  readonly windows: readonly ReportWindow[];
  /** True: more reports follow. Plan again when these are issued. */
  readonly more: boolean;
  readonly flags: readonly string[];
}

/** An event, one of its descriptors, and the reports that were made of it. */
export interface PlanInput {
  readonly event: CoordinationEvent;
  /** Nominal start. The first receipt, where the event starts "now". */
  readonly start: Instant;
  /** Receipt of this revision. */
  readonly receivedAt: Instant;
  readonly descriptor: number;
  /** Null: no report issued yet. */
  readonly issued: Issued | null;
}
/** Large enough to count the missed reports of an endless plan. */
const MOST_MISSED = 2 ** 40;

/** `<eventID>/<descriptor#>/<k>`: a report keeps its name, so that the partner can detect repeats. */
export const reportName = ({
  event,
  descriptor,
  k,
}: Pick<ReportWindow, "event" | "descriptor" | "k">): string => `${event}/${descriptor}/${k}`;

/**
 * Reports that one descriptor of an event still asks for. A pure function of stored values: it gives the same after a
 * restart. A new revision gives the schedule that replaces all reports not issued yet. At most `maxIntervals` reports
 * of at most as many intervals.
 */
export function reportPlan(input: PlanInput, settings: ReportSettings): ReportPlan {
  const { event, descriptor } = input;
  const requested = event.reports[descriptor];
  if (requested === undefined) return { windows: [], more: false, flags: [] };
  const { wanted, flags: odd } = wantedOf(requested, event);
  const { parameters, flags: counts } = descriptorParameters(requested, settings);
  const flags = [...odd, ...counts];
  if (descriptor >= MOST_DESCRIPTORS) flags.push("too many report descriptors: this one is not answered");
  if (event.duration <= 0) flags.push("the event's duration is zero: nothing to report");
  if (descriptor >= MOST_DESCRIPTORS || event.duration <= 0) return { windows: [], more: false, flags };

  const grid = gridOf(parameters, { start: input.start, duration: event.duration }, settings);
  const schedule = scheduleOf(parameters, grid, input.receivedAt, settings);
  const { first, end, skipped } = rangeOf(schedule, input, settings);
  flags.push(...outOfRange(grid), ...grid.flags);
  if (skipped > 0)
    flags.push(`${skipped} more ${skipped === 1 ? "was" : "were"} due before the event arrived`);
  const windows: ReportWindow[] = [];
  for (let index = first; index < end; index += 1) {
    const { intervals, moment, trigger } = schedule.at(index);
    const k = input.issued === null ? index : input.issued.k + 1 + index - first;
    const basis = parameters.historical ? "history" : "forecast";
    const due = later(trigger, input.receivedAt);
    // Beyond the last instant that there is, intervals have no length.
    if (intervals.length > 0)
      windows.push({ event: event.id, descriptor, k, wanted, basis, intervals, moment, due, flags });
  }
  return { windows, more: end < schedule.count, flags };
}

const outOfRange = ({ parameters, count }: Grid): readonly string[] =>
  parameters.start !== "last" && parameters.start >= count
    ? [`startInterval ${parameters.start} is beyond the last interval`]
    : [];

interface Slot {
  readonly intervals: readonly ReportInterval[];
  readonly moment: Instant;
  readonly trigger: Instant;
}

interface Schedule {
  readonly count: number;
  readonly at: (index: number) => Slot;
}

/** Rule R on the grid, with times. */
function scheduleOf(
  parameters: DescriptorParameters,
  grid: Grid,
  receivedAt: Instant,
  settings: ReportSettings,
): Schedule {
  const ranges = reportRanges(grid.parameters, grid.count);
  const isReceipt = isAcknowledgement(parameters);
  return {
    count: ranges.count,
    at: (index) => {
      const { first, last, edge } = ranges.at(index);
      const start = grid.spanOf(first).from;
      const end = grid.spanOf(last).until;
      const intervals = intervalsOf(first, last, edge, grid, settings.maxIntervals);
      if (isReceipt) return { intervals, moment: receivedAt, trigger: receivedAt };
      return edge === "start"
        ? { intervals, moment: start, trigger: start }
        : { intervals, moment: end, trigger: after(end, settings.settleDelay) };
    },
  };
}

/** Intervals of one report. Of too many, those next to its moment are kept. */
function intervalsOf(
  first: number,
  last: number,
  edge: "start" | "end",
  grid: Grid,
  most: number,
): readonly ReportInterval[] {
  const count = Math.min(last - first + 1, most);
  const from = edge === "start" ? first : last - count + 1;
  return Array.from({ length: count }, (_, offset) => ({
    id: from + offset,
    span: grid.spanOf(from + offset),
  })).filter(({ span }) => span.from < span.until);
}

/** Range of reports to send. Issued ones are left out; `catchUp` limits those due before the event arrived. */
function rangeOf(
  { count, at }: Schedule,
  { issued, receivedAt }: PlanInput,
  { catchUp, maxIntervals }: ReportSettings,
): { readonly first: number; readonly end: number; readonly skipped: number } {
  const searched = Math.min(count, MOST_MISSED);
  const missed = firstIndex(searched, (index) => at(index).trigger >= receivedAt);
  const done = issued === null ? 0 : firstIndex(searched, (index) => at(index).moment > issued.moment);
  const caught = { latest: Math.min(1, missed), all: Math.min(maxIntervals, missed), none: 0 }[catchUp];
  const skipped = missed - caught;
  const first = Math.max(skipped, done);
  return { first, end: Math.min(first + maxIntervals, count), skipped: Math.max(0, skipped - done) };
}

/**
 * Reports still owed for an event that was withdrawn at `at`. Reports due by then are owed with each `onCancel`.
 * With `partial`, the one under way follows, cut at `at`.
 */
export function afterWithdrawal(
  windows: readonly ReportWindow[],
  at: Instant,
  { onCancel, settleDelay }: Pick<ReportSettings, "onCancel" | "settleDelay">,
): readonly ReportWindow[] {
  const begun = windows
    .filter(({ basis, moment }) => moment <= at || (onCancel === "partial" && basis === "history"))
    .map((window) => cutAt(window, at, settleDelay))
    .filter(({ intervals }) => intervals.length > 0);
  const underWay = begun.findIndex(({ moment }) => moment === at);
  return underWay === -1 ? begun : begun.slice(0, underWay + 1);
}

function cutAt(window: ReportWindow, at: Instant, settleDelay: Millis): ReportWindow {
  if (window.moment <= at) return window;
  const intervals = window.intervals
    .filter(({ span }) => span.from < at)
    .map(({ id, span }) => ({ id, span: { ...span, until: earlier(span.until, at) } }));
  const flags = [...window.flags, "partial: the event was withdrawn"];
  return { ...window, intervals, moment: at, due: after(at, settleDelay), flags };
}
