import type { Charger } from "../../domain/charger.ts";
import { after, type ChargerId, earlier, instant, type Instant, minutes } from "../../domain/units.ts";
import type { Command, CommandRecord } from "../../domain/command.ts";
import { type Ramp, riseOf } from "./ramp.ts";
import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import { HOUR, type Writes } from "../send/sendQueue.ts";
import type { Verdict } from "./verdict.ts";

/** The reason that delays an increase, and its end. */
export interface Deferral {
  readonly by:
    | "minimum interval"
    | "minimum off time"
    | "writes per hour"
    | "release ramp"
    | "phase interval";
  readonly until: Instant;
}

/** Earliest times of an increase, each by one cause. */
export interface Pace {
  /** The writes of the last hour leave room for another. */
  readonly writableAt: Instant;
  /** The site's ramp lets it through. */
  readonly rampAt: Instant;
}

/** Earliest time of an increase, by the charger's writes and by the chargers before it in the ramp. */
export const paceOf = (
  { writes, ramp }: { readonly writes: Writes; readonly ramp: Ramp | null },
  { id, writesPerHour }: Charger,
  now: Instant,
): Pace => ({
  writableAt: writesPerHour === null ? now : writes.roomAt(id, writesPerHour, now),
  rampAt: ramp?.nextSlot(id, now) ?? now,
});

/** Restores the writes of the last hour at a start, so that a restart does not allow them twice. */
export function recallWrites(
  { chargers, writes }: { readonly chargers: ReadonlyMap<ChargerId, Charger>; readonly writes: Writes },
  recorded: (charger: ChargerId, since: Instant) => readonly Instant[],
  now: Instant,
): void {
  const since = instant(now - HOUR);
  for (const { id, writesPerHour } of chargers.values())
    if (writesPerHour !== null) writes.recall(id, recorded(id, since));
}

/** Longest delay of a release, or of the end of a pause, by the limit on writes. */
const LONGEST_FOR_WEAR = minutes(5);

/**
 * Why an increase has to wait. Null: it need not.
 * A reduction never waits: protection of hardware must not delay one.
 */
export function deferralOf(
  { command }: CommandRecord,
  desired: Desired,
  verdict: Verdict,
  { writableAt, rampAt }: Pace,
  now: Instant,
): Deferral | null {
  const { charger } = verdict;
  const wasSetBack = now < command.decidedAt;
  if (wasSetBack || isReduction(command.desired, desired)) return null;
  const rested = after(command.decidedAt, charger.minInterval);
  // A command whose window is over need not last until the interval ends.
  const interval = command.until === null ? rested : earlier(rested, command.until);
  const off = command.desired.kind === "pause" ? after(command.decidedAt, charger.minOff) : now;
  const delays: readonly Deferral[] = [
    { by: "minimum interval", until: interval },
    { by: "minimum off time", until: off },
    { by: "writes per hour", until: writableWithin(command, verdict, writableAt) },
    { by: "release ramp", until: isRise(command.desired, desired, verdict) ? rampAt : now },
    { by: "phase interval", until: phasesReleasableAt(command.desired, desired, verdict, now) },
  ];
  const deferral = delays.reduce((longest, delay) => (delay.until > longest.until ? delay : longest));
  return deferral.until > now ? deferral : null;
}

/**
 * Earliest increase by the limit on writes.
 * A release, or the end of a pause, waits five minutes at most.
 * A command that was only extended does not restart those five minutes.
 */
function writableWithin(
  { desired, decidedAt, until, cause }: Command,
  { winner }: Verdict,
  writableAt: Instant,
): Instant {
  if (winner !== null && desired.kind !== "pause") return writableAt;
  const longest = after(decidedAt, LONGEST_FOR_WEAR);
  return earlier(writableAt, cause === "held" && until !== null ? earlier(longest, until) : longest);
}

/**
 * A release switches back to all phases. That waits for the interval between switches, unless an operator
 * releases.
 */
function phasesReleasableAt(
  from: Desired,
  to: Desired,
  { charger: { phaseSwitching }, hold }: Verdict,
  now: Instant,
): Instant {
  const switched = switchedIn(from);
  const switches = to.kind === "release" && switched?.count === 1 && phaseSwitching !== null && hold === null;
  return switches && switched.since <= now ? after(switched.since, phaseSwitching.every) : now;
}

/** True: the vehicle may draw more, in watts or amperes. An empty charger draws nothing more. */
const isRise = (from: Desired, to: Desired, verdict: Verdict): boolean =>
  siteRise(from, to, verdict, "W") > 0;

/** The increase that the vehicle may draw, in the unit of the ramp. */
export const siteRise = (
  from: Desired,
  to: Desired,
  { charger, vehicle, occupant }: Verdict,
  unit: "A" | "W",
): number => (occupant.kind === "nobody" ? 0 : riseOf(from, to, charger, vehicle, unit));

/**
 * A change counts as a reduction unless both levels are comparable and the level rises.
 * A change of unit, A to W or back, counts as a reduction too. Protection of hardware never delays one.
 */
function isReduction(from: Desired, to: Desired): boolean {
  if (to.kind === "release") return false;
  if (from.kind === "pause") return to.kind === "pause";
  if (from.kind === "current" && to.kind === "current") return to.amperes < from.amperes;
  if (from.kind === "power" && to.kind === "power") return to.watts < from.watts;
  return true;
}

/** Text for operators. */
export function formatDeferral({ by }: Deferral, writesPerHour: number | null): string {
  switch (by) {
    case "minimum interval":
      return "its setpoint changed just now (minimum interval)";
    case "minimum off time":
      return "it was paused just now (minimum off time)";
    case "writes per hour":
      return `it allows ${writesPerHour} writes an hour`;
    case "release ramp":
      return "others rise first (release ramp)";
    case "phase interval":
      return "its phases were switched just now (phase switching)";
  }
}
