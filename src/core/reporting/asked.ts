import type { ReportDescriptor } from "../control/event.ts";
import type { ReportSettings } from "./settings.ts";

/** The counts of a descriptor once nonsense is out of them and absence is a word (openadr3 1.1). */
export interface Asked {
  /** 0-based interval on which to generate; `last`: at the end. */
  readonly start: number | "last";
  readonly count: number | "all";
  /** Intervals between reports; null: not set. */
  readonly step: number | null;
  readonly repeat: number | "forever";
  /** False: a forecast. */
  readonly historical: boolean;
}

/** Nobody means more: a count above this is a mistake, and is taken for this. */
const MOST = 100_000;
/** A frequency that is a time may well be: ten years, in seconds. */
const LONGEST = 10 * 365 * 24 * 60 * 60;

/**
 * The counts as they are meant: absent and -1 are not set, and so is 0 (openadr3 1.4: services write 0 for what nobody
 * set) except for a `startInterval` beside counts that are set.
 */
export function askedOf(
  descriptor: Pick<
    ReportDescriptor,
    "startInterval" | "numIntervals" | "frequency" | "repeat" | "historical"
  >,
  { maxIntervals, mode }: Pick<ReportSettings, "maxIntervals" | "mode">,
): { readonly asked: Asked; readonly flags: readonly string[] } {
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
    asked: {
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
export const isAcknowledgement = ({ start, count, step, repeat, historical }: Asked): boolean =>
  !historical && start === 0 && count === "all" && step === null && repeat === 1;
