import {
  after,
  between,
  type Instant,
  type Millis,
  millis,
  minutes,
  seconds,
  type VehicleId,
} from "../units.ts";
import type { Measured, Reading, Stated } from "./reading.ts";
import type { Kept } from "./thinning.ts";

/** The last that a charger said of each kind, for as long as nothing puts it in doubt. */
export type LastWords = ReadonlyMap<Reading["kind"], Measured | Stated>;

/** Below this nothing flows that a register would count: standby electronics draw less, W. */
const FLOWING = 100;
/** The register may be told a little before the power that ended. */
export const TOGETHER = seconds(10);
/** What comes later than this by its own time was kept: nobody knows what became of it since. */
const LATE = minutes(1);

interface Standing {
  readonly said: LastWords;
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
export function upheld(
  { said, kept, vehicle, hasFlowed }: Standing,
  now: Instant,
  every: Millis,
): readonly Reading[] {
  const isMoving = flows(said);
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
export function flows(said: LastWords): boolean {
  const power = said.get("power");
  if (power?.kind === "power") return Math.abs(power.value) >= FLOWING;
  const state = said.get("state");
  return state?.kind !== "state" || ["charging", "error", "unknown"].includes(state.value);
}
