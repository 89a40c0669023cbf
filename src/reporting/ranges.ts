import type { ReportDescriptor } from "../domain/event.ts";
import type { ReportSettings } from "./settings.ts";

/** Counts of a descriptor, normalized: absence is a named value. */
export interface DescriptorParameters {
  /** 0-based interval on which to generate; `last`: at the end. */
  readonly start: number | "last";
  readonly count: number | "all";
  /** Intervals between reports; null: not set. */
  readonly step: number | null;
  readonly repeat: number | "forever";
  /** False: a forecast. */
  readonly historical: boolean;
}

/** Cap on counts. A larger one is a mistake, and is replaced by this. */
const MOST = 100_000;
/** A frequency in seconds may be larger: ten years. */
const LONGEST = 10 * 365 * 24 * 60 * 60;

/**
 * Normalizes the counts of a descriptor. Absent, -1 and 0 mean "not set": services write 0 for unset fields. A
 * `startInterval` of 0 counts where other counts are set.
 */
export function descriptorParameters(
  descriptor: Pick<
    ReportDescriptor,
    "startInterval" | "numIntervals" | "frequency" | "repeat" | "historical"
  >,
  { maxIntervals, mode }: Pick<ReportSettings, "maxIntervals" | "mode">,
): { readonly parameters: DescriptorParameters; readonly flags: readonly string[] } {
  const { startInterval, numIntervals, frequency, repeat, historical } = descriptor;
  const flags: string[] = [];
  const count = (name: string, found: number | null, most: number): number | null => {
    if (found !== null && found < -1) flags.push(`${name} ${found} means nothing: taken as not set`);
    if (found === null || found < 0) return null;
    if (found > most) flags.push(`${name} ${found} is taken as ${most}`);
    return Math.min(found, most);
  };
  const start = count("startInterval", startInterval, MOST);
  const number = count("numIntervals", numIntervals, maxIntervals) || null;
  const isTime = mode === "frequencySeconds" || mode === "frequencyMinutes";
  const step = count("frequency", frequency, isTime ? LONGEST : MOST) || null;
  const times = repeat === -1 ? "forever" : count("repeat", repeat, MOST) || 1;
  const allZero = [startInterval, numIntervals, frequency, repeat].every((found) => found === 0);
  return {
    parameters: {
      start: start === null || allZero ? "last" : start,
      count: number ?? "all",
      step,
      repeat: times,
      historical,
    },
    flags,
  };
}

/** A forecast of all there is, once, from the first interval on: it acknowledges the event, and is due on receipt. */
export const isAcknowledgement = ({
  start,
  count,
  step,
  repeat,
  historical,
}: DescriptorParameters): boolean =>
  !historical && start === 0 && count === "all" && step === null && repeat === 1;

/** Intervals of one report, `first` to `last`, and the edge at which it is sent. */
interface ReportRange {
  readonly first: number;
  readonly last: number;
  /** A forecast is sent at the start of its first interval, the rest at the end of the last. */
  readonly edge: "start" | "end";
}

/** All reports that a descriptor asks for, by their number: there may be infinitely many. */
export interface ReportRanges {
  readonly count: number;
  readonly at: (k: number) => ReportRange;
}

/**
 * Rule R (openadr3 1.4): which report holds which of `intervals` intervals, and when it is sent. Where the standard's
 * definitions contradict its examples, the examples win. What lies past the last interval is cut off.
 */
export function reportRanges(parameters: DescriptorParameters, intervals: number): ReportRanges {
  const end = intervals - 1;
  const start = parameters.start === "last" ? null : Math.min(parameters.start, end);
  if (!parameters.historical) return forecasts(parameters, start ?? 0, end);
  if (parameters.repeat === 1 && (start !== null || parameters.step === null))
    return once(parameters, start, end);
  return start === null ? upToTheEnd(parameters, end) : fromTheStart(parameters, start, end);
}

function forecasts({ count, step, repeat }: DescriptorParameters, start: number, end: number): ReportRanges {
  const held = count === "all" ? end - start + 1 : count;
  const every = step ?? held;
  return {
    count: Math.min(times(repeat), Math.floor((end - start) / every) + 1),
    at: (k) => {
      const first = start + k * every;
      return { first, last: Math.min(first + held - 1, end), edge: "start" };
    },
  };
}

/** A single report: the last intervals, or those from `start` on. */
function once({ count }: DescriptorParameters, start: number | null, end: number): ReportRanges {
  const held = count === "all" ? end + 1 : count;
  const first = start ?? Math.max(0, end - held + 1);
  return { count: 1, at: () => ({ first, last: Math.min(first + held - 1, end), edge: "end" }) };
}

/** A report after every `frequency` intervals, and one for the rest at the end. Here a `repeat` of 1 is no limit. */
function upToTheEnd({ count, step, repeat }: DescriptorParameters, end: number): ReportRanges {
  const every = step ?? (count === "all" ? end + 1 : count);
  const held = count === "all" ? every : count;
  const reports = Math.floor(end / every) + 1;
  return {
    count: repeat === 1 ? reports : Math.min(times(repeat), reports),
    at: (k) => {
      const goal = (k + 1) * every - 1;
      const last = Math.min(goal, end);
      return { first: Math.max(0, Math.min(goal - held + 1, last)), last, edge: "end" };
    },
  };
}

function fromTheStart(
  { count, step, repeat }: DescriptorParameters,
  start: number,
  end: number,
): ReportRanges {
  const held = count === "all" ? (step ?? end + 1) : count;
  const every = step ?? held;
  const goal = Math.min(Math.max(start, held - 1), end);
  return {
    count: Math.min(times(repeat), Math.floor((end - goal) / every) + 1),
    at: (k) => {
      const last = goal + k * every;
      return { first: Math.max(0, last - held + 1), last, edge: "end" };
    },
  };
}

const times = (repeat: DescriptorParameters["repeat"]): number => (repeat === "forever" ? Infinity : repeat);
