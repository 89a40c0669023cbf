import type { Charger, PhaseSwitching } from "../../domain/charger.ts";
import { after, type Instant, instant, later, seconds } from "../../domain/units.ts";
import type { CommandRecord } from "../../domain/command.ts";
import type { Limit } from "./limits.ts";
import {
  type Desired,
  levelOnRecord,
  type PhaseCount,
  formatPhases,
  type SwitchedTo,
  switchedIn,
} from "../../domain/setpoint.ts";
import type { Verdict } from "./verdict.ts";

/** The next setpoint on the way to the verdict, and the earliest time of the following one. */
export interface Phased {
  readonly verdict: Verdict;
  /** Null: no further step. */
  readonly evaluateAt: Instant | null;
}

/** Phases of a charger that was never switched, or was switched back. */
const ALL: PhaseCount = 3;
const NEVER: SwitchedTo = { count: ALL, since: instant(0), chargingSince: null };

/**
 * Switches a charger to the phases that suit the setpoint, one command each: a pause, the switch, the level.
 * The dead time separates the switch and the level.
 * Until a switch is allowed, the level is what the current phases allow: never more than asked.
 */
export function phased(verdict: Verdict, last: CommandRecord | undefined, now: Instant): Phased {
  const { phases, until, charger } = verdict;
  const { phaseSwitching } = charger;
  if (phases === null || phaseSwitching === null || until === null) return { verdict, evaluateAt: null };
  const lastSwitch = recentSwitch(last, phaseSwitching, now);
  const count = lastSwitch?.count ?? ALL;
  const current = phases.on[count];
  const { best } = phases;
  const to = (desired: Desired, limits: readonly Limit[], evaluateAt: Instant | null): Phased => ({
    verdict: { ...verdict, desired, limits },
    evaluateAt,
  });
  const switchAt =
    best === null || best === count
      ? null
      : whenToSwitch(best, lastSwitch ?? NEVER, until, { ...phaseSwitching, minOn: charger.minOn }, now);
  if (best !== null && switchAt !== null && switchAt <= now) {
    const limits = [...phases.on[best].limits, pausedFor(best)];
    const restedAt = whenRested(last, phaseSwitching, now);
    if (restedAt > now) return to(paused(lastSwitch), limits, restedAt);
    const switched = { count: best, since: now, chargingSince: null };
    return to(paused(switched), limits, after(now, phaseSwitching.deadTime));
  }
  const deadUntil = after(switchedAt(lastSwitch ?? NEVER, last, now), phaseSwitching.deadTime);
  if (deadUntil > now && current.desired.kind !== "pause")
    return to(paused(lastSwitch), [...current.limits, pausedFor(count)], deadUntil);
  const waits: readonly Limit[] =
    best === null || switchAt === null
      ? []
      : [{ by: "phase interval", asked: formatPhases(best), allowed: levelOnRecord(current.desired) }];
  return to(keeping(current.desired, lastSwitch, last, now), [...current.limits, ...waits], switchAt);
}

const pausedFor = (count: PhaseCount): Limit => ({
  by: "phase switch",
  asked: formatPhases(count),
  allowed: "pause",
});

const paused = (lastSwitch: SwitchedTo | null): Desired =>
  lastSwitch === null ? { kind: "pause" } : { kind: "pause", phases: { ...lastSwitch, chargingSince: null } };

/** Keeps the level and adds the data of the last switch. */
function keeping(
  desired: Desired,
  lastSwitch: SwitchedTo | null,
  last: CommandRecord | undefined,
  now: Instant,
): Desired {
  if (lastSwitch === null || desired.kind === "release") return desired;
  if (desired.kind === "pause") return paused(lastSwitch);
  const goesOn = last?.command.desired.kind !== "pause" && lastSwitch.chargingSince !== null;
  return { ...desired, phases: { ...lastSwitch, chargingSince: goesOn ? lastSwitch.chargingSince : now } };
}

/** The last switch. Null: all phases are in use, and no interval of a switch is running. */
function recentSwitch(
  last: CommandRecord | undefined,
  { every }: PhaseSwitching,
  now: Instant,
): SwitchedTo | null {
  const lastSwitch = last === undefined ? null : switchOf(last);
  if (lastSwitch === null) return null;
  const [since, chargingSince] = [
    past(lastSwitch.since, now),
    lastSwitch.chargingSince && past(lastSwitch.chargingSince, now),
  ];
  return lastSwitch.count === ALL && after(since, every) <= now
    ? null
    : { ...lastSwitch, since, chargingSince };
}

/** Begin of the dead time: the first publish of the switch. Not published yet: still to come. */
function switchedAt({ since }: SwitchedTo, last: CommandRecord | undefined, now: Instant): Instant {
  if (last === undefined || last.progress === "observed" || last.command.desired.kind !== "pause")
    return since;
  const before = last.replaces === null ? null : switchedIn(last.replaces);
  const isSwitch = (switchedIn(last.command.desired)?.count ?? ALL) !== (before?.count ?? ALL);
  return isSwitch ? past(firstOut(last) ?? now, now) : since;
}

const firstOut = ({ outAt, sentAt }: CommandRecord): Instant | null => outAt ?? sentAt;

/** A release switches back to all phases, which is a switch too. */
function switchOf({ command: { desired, decidedAt }, replaces }: CommandRecord): SwitchedTo | null {
  const before = desired.kind !== "release" || replaces === null ? null : switchedIn(replaces);
  if (before === null) return switchedIn(desired);
  return { count: ALL, since: before.count === ALL ? before.since : decidedAt, chargingSince: null };
}

/** A time in the future: the clock was set back, so the real age is unknown. */
const past = (at: Instant, now: Instant): Instant => (at > now ? instant(0) : at);

/** Earliest begin of a switch. Null: not in this window. */
function whenToSwitch(
  best: PhaseCount,
  { since, chargingSince }: SwitchedTo,
  until: Instant,
  { every, settle, minOn }: PhaseSwitching & Pick<Charger, "minOn">,
  now: Instant,
): Instant | null {
  const at = after(since, every);
  // Only for more power. A reduction never waits for the minimum charging time.
  if (best === ALL) return chargingSince === null ? at : later(at, after(chargingSince, minOn));
  // The window's end switches back, and that must not be delayed.
  return after(after(later(at, now), settle), every) <= until ? at : null;
}

/**
 * Time at which the pause has lasted long enough for a switch.
 * The pause must have arrived, without a sign against it.
 */
function whenRested(last: CommandRecord | undefined, { settle }: PhaseSwitching, now: Instant): Instant {
  if (last?.command.desired.kind !== "pause") return after(now, settle);
  const { progress, command } = last;
  const isDoubtful = progress === "planned" || progress === "refused" || progress === "notFollowed";
  return isDoubtful
    ? after(now, settle > 0 ? settle : seconds(1))
    : after(past(firstOut(last) ?? command.decidedAt, now), settle);
}
