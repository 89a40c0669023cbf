import type { Asked } from "./asked.ts";

/** One report in terms of intervals: it holds `first` to `last`, and is sent at one edge of one of them. */
interface Round {
  readonly first: number;
  readonly last: number;
  /** A forecast is sent at the start of its first interval, the rest at the end of the last. */
  readonly edge: "start" | "end";
}

/** All reports that a descriptor asks for, by their number: there may be infinitely many. */
export interface Rounds {
  readonly count: number;
  readonly at: (k: number) => Round;
}

/**
 * Rule R (openadr3 1.4): which report holds which of `intervals` intervals, and when it is sent. Where the standard's
 * definitions contradict its examples, the examples win. What lies past the last interval is cut off.
 */
export function roundsOf(asked: Asked, intervals: number): Rounds {
  const end = intervals - 1;
  const start = asked.start === "last" ? null : Math.min(asked.start, end);
  if (!asked.historical) return forecasts(asked, start ?? 0, end);
  if (asked.repeat === 1 && (start !== null || asked.step === null)) return once(asked, start, end);
  return start === null ? upToTheEnd(asked, end) : fromTheStart(asked, start, end);
}

function forecasts({ count, step, repeat }: Asked, start: number, end: number): Rounds {
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

/** One report: the last intervals, or those from `start` on. */
function once({ count }: Asked, start: number | null, end: number): Rounds {
  const held = count === "all" ? end + 1 : count;
  const first = start ?? Math.max(0, end - held + 1);
  return { count: 1, at: () => ({ first, last: Math.min(first + held - 1, end), edge: "end" }) };
}

/** One after every `frequency` intervals, and one for what is left at the end. A `repeat` of 1 is no limit here. */
function upToTheEnd({ count, step, repeat }: Asked, end: number): Rounds {
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

function fromTheStart({ count, step, repeat }: Asked, start: number, end: number): Rounds {
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

const times = (repeat: Asked["repeat"]): number => (repeat === "forever" ? Infinity : repeat);
