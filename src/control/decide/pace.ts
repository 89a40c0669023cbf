import { after, earlier, type Instant, minutes } from "../../domain/units.ts";
import type { Command, CommandRecord } from "../../domain/command.ts";
import { riseOf } from "./ramp.ts";
import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import type { Verdict } from "./verdict.ts";

/** What holds an increase back, and until when. */
export interface Held {
  readonly by:
    | "minimum interval"
    | "minimum off time"
    | "writes per hour"
    | "release ramp"
    | "phase interval";
  readonly until: Instant;
}

/** When an increase may go out, whatever else holds it back. */
export interface Pace {
  /** The writes of the last hour leave room for another. */
  readonly writableAt: Instant;
  /** The site's ramp lets it through. */
  readonly rampAt: Instant;
}

/** For the sake of wear a release, or the end of a pause, waits no longer than this after what went out before it. */
const LONGEST_FOR_WEAR = minutes(5);

/** Why an increase has to wait; null: it need not. A reduction never does: no protection of hardware delays one. */
export function heldBy(
  { command }: CommandRecord,
  desired: Desired,
  verdict: Verdict,
  { writableAt, rampAt }: Pace,
  now: Instant,
): Held | null {
  const { charger } = verdict;
  const wasSetBack = now < command.decidedAt;
  if (wasSetBack || isReduction(command.desired, desired)) return null;
  const rested = after(command.decidedAt, charger.minInterval);
  // A command whose window is over need not stand until the interval is.
  const interval = command.until === null ? rested : earlier(rested, command.until);
  const off = command.desired.kind === "pause" ? after(command.decidedAt, charger.minOff) : now;
  const brakes: readonly Held[] = [
    { by: "minimum interval", until: interval },
    { by: "minimum off time", until: off },
    { by: "writes per hour", until: bearableAt(command, verdict, writableAt) },
    { by: "release ramp", until: isRise(command.desired, desired, verdict) ? rampAt : now },
    { by: "phase interval", until: switchableBack(command.desired, desired, verdict, now) },
  ];
  const held = brakes.reduce((longest, brake) => (brake.until > longest.until ? brake : longest));
  return held.until > now ? held : null;
}

/**
 * When wear lets an increase through. A release, or the end of a pause, waits for five minutes at most, however many
 * writes the last hour saw. A command that was only made longer does not start those five minutes anew.
 */
function bearableAt(
  { desired, decidedAt, until, cause }: Command,
  { winner }: Verdict,
  writableAt: Instant,
): Instant {
  if (winner !== null && desired.kind !== "pause") return writableAt;
  const longest = after(decidedAt, LONGEST_FOR_WEAR);
  return earlier(writableAt, cause === "held" && until !== null ? earlier(longest, until) : longest);
}

/** A release gives all phases back, and a charger is not switched more often than it may be, unless a person says so. */
function switchableBack(
  from: Desired,
  to: Desired,
  { charger: { phaseSwitching }, hold }: Verdict,
  now: Instant,
): Instant {
  const switched = switchedIn(from);
  const switches = to.kind === "release" && switched?.count === 1 && phaseSwitching !== null && hold === null;
  return switches && switched.since <= now ? after(switched.since, phaseSwitching.every) : now;
}

/** In watts or in amperes, a rise is a rise; a charger without a vehicle draws nothing more. */
const isRise = (from: Desired, to: Desired, verdict: Verdict): boolean =>
  siteRise(from, to, verdict, "W") > 0;

/** By how much a charger's vehicle may draw more, in the unit of the ramp. */
export const siteRise = (
  from: Desired,
  to: Desired,
  { charger, vehicle, occupant }: Verdict,
  unit: "A" | "W",
): number => (occupant.kind === "nobody" ? 0 : riseOf(from, to, charger, vehicle, unit));

/**
 * Unless both can be compared and the level rises, it counts as a reduction, which protection of hardware never delays:
 * so does a change of unit, A to W or back, whatever it comes to.
 */
function isReduction(from: Desired, to: Desired): boolean {
  if (to.kind === "release") return false;
  if (from.kind === "pause") return to.kind === "pause";
  if (from.kind === "current" && to.kind === "current") return to.amperes < from.amperes;
  if (from.kind === "power" && to.kind === "power") return to.watts < from.watts;
  return true;
}

/** For people. */
export function formatHeld({ by }: Held, writesPerHour: number | null): string {
  switch (by) {
    case "minimum interval":
      return "it was told something just now (minimum interval)";
    case "minimum off time":
      return "it was paused just now (minimum off time)";
    case "writes per hour":
      return `it bears ${writesPerHour} writes an hour`;
    case "release ramp":
      return "others rise first (release ramp)";
    case "phase interval":
      return "its phases were switched just now (phase switching)";
  }
}
