import type { CoordinationEvent } from "../domain/event.ts";
import { MOST_DESCRIPTORS } from "../domain/eventSummary.ts";
import type { ReportInterval, ReportWindow, Issued } from "../domain/report.ts";
import { after, earlier, type Instant, later, type Millis } from "../domain/units.ts";
import { firstIndex } from "../platform/dueQueue.ts";
import { type Grid, gridOf } from "./grid.ts";
import { wantedOf } from "./payload.ts";
import {
  type DescriptorParameters,
  descriptorParameters,
  isAcknowledgement,
  reportRanges,
} from "./ranges.ts";
import type { ReportSettings } from "./settings.ts";

export interface ReportPlan {
  /** In the order in which they are due. */
  readonly windows: readonly ReportWindow[];
  /** There are further ones: ask again when these are handed over. */
  readonly more: boolean;
  readonly flags: readonly string[];
}

export interface PlanInput {
  readonly event: CoordinationEvent;
  /** Nominal: where the wire said "now", the first receipt. */
  readonly start: Instant;
  /** When this revision came. */
  readonly receivedAt: Instant;
  readonly descriptor: number;
  /** Null: none yet. */
  readonly issued: Issued | null;
}
/** Enough to find what is missed of an endless plan. */
const MOST_MISSED = 2 ** 40;

/** `<eventID>/<descriptor#>/<k>`: the same report always has the same name, so that repeats can be spotted. */
export const reportName = ({
  event,
  descriptor,
  k,
}: Pick<ReportWindow, "event" | "descriptor" | "k">): string => `${event}/${descriptor}/${k}`;

/**
 * The reports that one descriptor of an event asks for from now on (openadr3 1.4, 1.5). A pure function of what is
 * stored: asked again after a restart it gives the same; asked with a new revision it gives the schedule that replaces
 * what was not handed over. At most `maxIntervals` windows of at most as many intervals, whatever the numbers say.
 */
export function reportPlan(input: PlanInput, settings: ReportSettings): ReportPlan {
  const { event, descriptor } = input;
  const asking = event.reports[descriptor];
  if (asking === undefined) return { windows: [], more: false, flags: [] };
  const { wanted, flags: odd } = wantedOf(asking, event);
  const { asked, flags: counts } = descriptorParameters(asking, settings);
  const flags = [...odd, ...counts];
  if (descriptor >= MOST_DESCRIPTORS) flags.push("too many report descriptors: this one is not answered");
  if (event.duration <= 0) flags.push("the event's duration is zero: nothing to report");
  if (descriptor >= MOST_DESCRIPTORS || event.duration <= 0) return { windows: [], more: false, flags };

  const grid = gridOf(asked, { start: input.start, duration: event.duration }, settings);
  const schedule = scheduleOf(asked, grid, input.receivedAt, settings);
  const { first, end, skipped } = rangeOf(schedule, input, settings);
  flags.push(...outOfRange(grid), ...grid.flags);
  if (skipped > 0)
    flags.push(`${skipped} more ${skipped === 1 ? "was" : "were"} due before the event arrived`);
  const windows: ReportWindow[] = [];
  for (let index = first; index < end; index += 1) {
    const { intervals, moment, trigger } = schedule.at(index);
    const k = input.issued === null ? index : input.issued.k + 1 + index - first;
    const basis = asked.historical ? "history" : "forecast";
    const due = later(trigger, input.receivedAt);
    // Beyond the last instant that there is, intervals have no length.
    if (intervals.length > 0)
      windows.push({ event: event.id, descriptor, k, wanted, basis, intervals, moment, due, flags });
  }
  return { windows, more: end < schedule.count, flags };
}

const outOfRange = ({ asked, count }: Grid): readonly string[] =>
  asked.start !== "last" && asked.start >= count
    ? [`startInterval ${asked.start} is beyond the last interval`]
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
  asked: DescriptorParameters,
  grid: Grid,
  receivedAt: Instant,
  settings: ReportSettings,
): Schedule {
  const rounds = reportRanges(grid.asked, grid.count);
  const isReceipt = isAcknowledgement(asked);
  return {
    count: rounds.count,
    at: (index) => {
      const { first, last, edge } = rounds.at(index);
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

/** Of too many, those next to the moment of the report. */
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

/** Which of them are sent: not those handed over, and of those that were due before the event arrived as many as set. */
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
 * What is still reported of an event that was withdrawn at `at`. Reports whose time had come by then are owed, whatever
 * `onCancel` says. With `partial`, the one that was under way follows, as far as it came.
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
