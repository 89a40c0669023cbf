import type { Reading, Measured, Stated } from "../domain/reading.ts";
import {
  seconds,
  type Millis,
  between,
  type Instant,
  instant,
  after,
  millis,
  minutes,
  type VehicleId,
} from "../domain/units.ts";

/** Newest stored reading of a kind, of one charger. Undefined: none. */
export type Kept = (kind: Reading["kind"]) => Reading | undefined;

/** Interval for values that are counted or integrated. */
const OFTEN = seconds(10);
const NOW_AND_THEN = seconds(60);

/**
 * Selects the readings of one message that are worth storing.
 * Power, current and register: every 10 s. The rest: every minute. Steps are stored at once.
 * A step: power by 5 % and 100 W, current by 5 % and 0.5 A, charge by 1 %, any change of a limit.
 * A message that changes state, vehicle or setpoint is stored whole. Duplicates are not stored.
 * Means and peaks are right to within a step. Energy is right to within 10 s of power at each edge.
 */
export function thin(kept: Kept, message: readonly Reading[]): readonly Reading[] {
  const fresh = message.filter((reading) => !isRepeat(kept(reading.kind), reading));
  const hasTransition = fresh.some((reading) => isTransition(kept(reading.kind), reading));
  return hasTransition ? fresh : fresh.filter((reading) => isWorthIt(kept(reading.kind), reading));
}

const isRepeat = (last: Reading | undefined, next: Reading): boolean =>
  last !== undefined && last.at === next.at && last.vehicle === next.vehicle && isSame(last, next);

function isTransition(last: Reading | undefined, next: Reading): boolean {
  if (last === undefined) return false;
  if (last.vehicle !== next.vehicle) return true;
  return (next.kind === "state" || next.kind === "setpoint") && !isSame(last, next);
}

function isWorthIt(last: Reading | undefined, next: Reading): boolean {
  if (last === undefined) return true;
  // Late readings come in a row too, so the distance counts, not the direction.
  if (Math.abs(next.at - last.at) >= everyOf(next.kind)) return true;
  const step = stepOf(next);
  if (step === null || typeof last.value !== "number" || typeof next.value !== "number") return false;
  const change = Math.abs(next.value - last.value);
  return change > step.least && change > step.share * Math.abs(last.value);
}

function everyOf(kind: Reading["kind"]): Millis {
  switch (kind) {
    case "power":
    case "current":
    case "energy":
      return OFTEN;
    case "voltage":
    case "soc":
    case "limit":
    case "state":
    case "setpoint":
      return NOW_AND_THEN;
  }
}

/** Change that is stored before its interval ends. Null: none. */
function stepOf({ kind }: Reading): { readonly least: number; readonly share: number } | null {
  switch (kind) {
    case "power":
      return { least: 100, share: 0.05 };
    case "current":
      return { least: 0.5, share: 0.05 };
    case "soc":
      return { least: 0.99, share: 0 };
    case "limit":
      return { least: 0, share: 0 };
    case "energy":
    case "voltage":
    case "state":
    case "setpoint":
      return null;
  }
}

const isSame = (a: Reading, b: Reading): boolean => comparisonKey(a) === comparisonKey(b);
/** Event and end count: they make the same level another setpoint. */
const comparisonKey = (reading: Reading): string =>
  JSON.stringify(reading.kind === "setpoint" ? [reading.value, reading.until, reading.event] : reading.value);

/** Cap on stored messages for one minute of charger time: a charger may flip its state without end. */
const MAX_PER_MINUTE = 120;
/** Messages that may exceed that rate: one day of values every ten seconds, when a charger empties its buffer. */
const MAX_AHEAD = 10_000;
/** Live and buffered messages may alternate, so several minutes are counted at a time. */
const MINUTES_COUNTED = 8;
const MINUTE = 60_000;

/**
 * Cap on stored messages of one charger, by their own time.
 * A second cap by arrival holds where the charger's clock is wrong.
 */
export class Allowance {
  /** In order of use, the latest last. */
  readonly #counts = new Map<number, number>();
  #ahead = 0;
  #refilledAt = instant(0);

  /** Counts a message from `at` that arrived `now`. False: it must not be stored. */
  takes(at: Instant, now: Instant): boolean {
    const passed = Math.max(0, between(this.#refilledAt, now)) / MINUTE;
    this.#refilledAt = now;
    this.#ahead = Math.max(0, this.#ahead - passed * MAX_PER_MINUTE);
    const minute = Math.floor(at / MINUTE);
    const count = this.#counts.get(minute) ?? 0;
    const isAllowed = count < MAX_PER_MINUTE && this.#ahead < MAX_AHEAD;
    if (isAllowed) this.#ahead += 1;
    this.#counts.delete(minute);
    this.#counts.set(minute, isAllowed ? count + 1 : count);
    const [oldest = minute] = this.#counts.keys();
    if (this.#counts.size > MINUTES_COUNTED) this.#counts.delete(oldest);
    return isAllowed;
  }
}

/** Last reported value of each kind, while nothing puts it in doubt. */
export type LastReadings = readonly (Measured | Stated)[];

/** Below this power no register counts: standby electronics draw less, W. */
const FLOWING = 100;
/** The register may be published shortly before the end of the power. */
export const TOGETHER = seconds(10);
/** A reading that is older than this at arrival was buffered: the present value is unknown. */
const LATE = minutes(1);

interface Carried {
  readonly lastReported: LastReadings;
  /** Last stored reading of each kind. */
  readonly kept: Kept;
  /** Vehicle on the charger now. */
  readonly vehicle: VehicleId | null;
  /** True: power flowed after the last register reading. */
  readonly hasFlowed: boolean;
}

/**
 * Repeats the last values of an online charger that reports only changes.
 * Only kinds without a stored reading for `every`, and only for the same vehicle.
 * A register is repeated only if no power flowed since its last reading.
 */
export function carryForward(
  { lastReported, kept, vehicle, hasFlowed }: Carried,
  now: Instant,
  every: Millis,
): readonly Reading[] {
  const isMoving = isPowerFlowing(lastReported);
  return lastReported
    .filter(({ kind, vehicle: seen, at, receivedAt }) => {
      if (between(at, receivedAt) > LATE) return false;
      const last = kept(kind);
      const isDue = last === undefined || isLongAgo(last.receivedAt, now, every);
      const hasMoved = kind === "energy" && (isMoving || hasFlowed);
      return isDue && seen === vehicle && !hasMoved;
    })
    .map((reading) => again(reading, now));
}

/** True after `every` or more. A time in the future is from before the clock moved back: its age is unknown. */
export const isLongAgo = (at: Instant, now: Instant, every: Millis): boolean =>
  at > now || between(at, now) >= every;

/** Keeps the charger's own clock, which may be a little behind. Its next reading must not seem older. */
const again = (reading: Measured | Stated, now: Instant): Reading => ({
  ...reading,
  at: after(now, millis(reading.at - reading.receivedAt)),
  receivedAt: now,
});

/** True while energy flows, or may flow because power and state are unknown. */
export function isPowerFlowing(lastReported: LastReadings): boolean {
  const power = lastReported.find(({ kind }) => kind === "power");
  if (power?.kind === "power") return Math.abs(power.value) >= FLOWING;
  const state = lastReported.find(({ kind }) => kind === "state");
  return state?.kind !== "state" || ["charging", "error", "unknown"].includes(state.value);
}
