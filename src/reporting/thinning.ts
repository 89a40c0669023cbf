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

/** The newest reading of each kind that was kept, of one charger. */
export type Kept = ReadonlyMap<Reading["kind"], Reading>;

/** What is counted and integrated, and what only has to be seen still to hold. */
const OFTEN = seconds(10);
const NOW_AND_THEN = seconds(60);

/**
 * Which readings of one message are worth storing. One of power, current and the register each 10 s, one of the rest
 * each minute; at once what steps: power by more than 5 % and 100 W, current by more than 5 % and 0.5 A, charge by a
 * percent, a limit at all. A message that changes state, vehicle or setpoint is kept whole. So means and peaks are
 * right to within a step, and energy to within 10 s of power at each edge of a report. Duplicates are not kept.
 */
export function thin(kept: Kept, message: readonly Reading[]): readonly Reading[] {
  const fresh = message.filter((reading) => !isRepeat(kept.get(reading.kind), reading));
  const turns = fresh.some((reading) => isTurn(kept.get(reading.kind), reading));
  return turns ? fresh : fresh.filter((reading) => isWorthIt(kept.get(reading.kind), reading));
}

const isRepeat = (last: Reading | undefined, next: Reading): boolean =>
  last !== undefined && last.at === next.at && last.vehicle === next.vehicle && isSame(last, next);

function isTurn(last: Reading | undefined, next: Reading): boolean {
  if (last === undefined) return false;
  if (last.vehicle !== next.vehicle) return true;
  return (next.kind === "state" || next.kind === "setpoint") && !isSame(last, next);
}

function isWorthIt(last: Reading | undefined, next: Reading): boolean {
  if (last === undefined) return true;
  // Late readings come in a row too: what counts is the distance, not the direction.
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

/** How far a value must move to be stored before its time; null: it may wait. */
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

const isSame = (a: Reading, b: Reading): boolean => wordsOf(a) === wordsOf(b);
/** The same level for another event, or for longer, is another setpoint. */
const wordsOf = (reading: Reading): string =>
  JSON.stringify(reading.kind === "setpoint" ? [reading.value, reading.until, reading.event] : reading.value);

/** Of what a charger says of one minute, more messages than this are not stored: one that flips its state on and on (F95). */
const MOST_OF_A_MINUTE = 120;
/** Ahead of that rate it may be by a day of something to keep each ten seconds: it empties its buffer in one go. */
const MOST_AHEAD = 10_000;
/** What comes live, and what was kept meanwhile, come in turns: so many minutes are counted at a time. */
const MINUTES_COUNTED = 8;
const MINUTE = 60_000;

/** How much of one charger may be stored, by when it was so; and, whatever its clock says, not much more by when it came. */
export class Allowance {
  /** The one that was looked at last comes last. */
  readonly #counts = new Map<number, number>();
  #ahead = 0;
  #lookedAt = instant(0);

  /** Whether one more message may be stored, that is from `at` and came now: then it counts. */
  takes(at: Instant, now: Instant): boolean {
    const passed = Math.max(0, between(this.#lookedAt, now)) / MINUTE;
    this.#lookedAt = now;
    this.#ahead = Math.max(0, this.#ahead - passed * MOST_OF_A_MINUTE);
    const minute = Math.floor(at / MINUTE);
    const count = this.#counts.get(minute) ?? 0;
    const isTaken = count < MOST_OF_A_MINUTE && this.#ahead < MOST_AHEAD;
    if (isTaken) this.#ahead += 1;
    this.#counts.delete(minute);
    this.#counts.set(minute, isTaken ? count + 1 : count);
    const [oldest = minute] = this.#counts.keys();
    if (this.#counts.size > MINUTES_COUNTED) this.#counts.delete(oldest);
    return isTaken;
  }
}

/** The last that a charger said of each kind, for as long as nothing puts it in doubt. */
export type LastReadings = ReadonlyMap<Reading["kind"], Measured | Stated>;

/** Below this nothing flows that a register would count: standby electronics draw less, W. */
const FLOWING = 100;
/** The register may be told a little before the power that ended. */
export const TOGETHER = seconds(10);
/** What comes later than this by its own time was kept: nobody knows what became of it since. */
const LATE = minutes(1);

interface Carried {
  readonly said: LastReadings;
  /** What was kept last of each kind. */
  readonly kept: Kept;
  /** Who is there now. */
  readonly vehicle: VehicleId | null;
  /** Something flowed since the register was told. */
  readonly hasFlowed: boolean;
}

/**
 * What still holds at `now` of a charger that is there and tells only what changes: its last words said again, of the
 * kinds of which nothing was kept for `every`, for the vehicle that was there. A register holds only if nothing flowed
 * since: where something did, one that was not told has not stood still.
 */
export function carryForward(
  { said, kept, vehicle, hasFlowed }: Carried,
  now: Instant,
  every: Millis,
): readonly Reading[] {
  const isMoving = isPowerFlowing(said);
  return [...said.values()]
    .filter(({ kind, vehicle: seen, at, receivedAt }) => {
      if (between(at, receivedAt) > LATE) return false;
      const last = kept.get(kind);
      const isDue = last === undefined || isLongAgo(last.receivedAt, now, every);
      const hasMoved = kind === "energy" && (isMoving || hasFlowed);
      return isDue && seen === vehicle && !hasMoved;
    })
    .map((word) => again(word, now));
}

/** By `every` or more. What was in the future was so before the clock was set back, nobody knows when. */
export const isLongAgo = (at: Instant, now: Instant, every: Millis): boolean =>
  at > now || between(at, now) >= every;

/** By its own clock, which may be a little behind: what it says next must not seem older. */
const again = (word: Measured | Stated, now: Instant): Reading => ({
  ...word,
  at: after(now, millis(word.at - word.receivedAt)),
  receivedAt: now,
});

/** Whether energy flows, as far as is known; where nothing is, it may. */
export function isPowerFlowing(said: LastReadings): boolean {
  const power = said.get("power");
  if (power?.kind === "power") return Math.abs(power.value) >= FLOWING;
  const state = said.get("state");
  return state?.kind !== "state" || ["charging", "error", "unknown"].includes(state.value);
}
