import type { Charger, PhaseSwitching } from "../../domain/charger.ts";
import { after, type Instant, instant, later, seconds } from "../../domain/units.ts";
import type { CommandRecord } from "../../domain/command.ts";
import type { Limit } from "./limits.ts";
import {
  type Desired,
  formatLevel,
  type PhaseCount,
  formatPhases,
  type SwitchedTo,
  switchedIn,
} from "../../domain/setpoint.ts";
import type { Verdict } from "./verdict.ts";

/** What may be told now on the way to what should hold, and when the next step may come. */
export interface Phased {
  readonly verdict: Verdict;
  /** Null: nothing waits. */
  readonly evaluateAt: Instant | null;
}

/** What a charger has that was never switched, or that we gave back. */
const ALL: PhaseCount = 3;
const NEVER: SwitchedTo = { count: ALL, since: instant(0), chargingSince: null };

/**
 * Brings a charger to the phases that can do what is asked, one command each: a pause, the switch, and after the dead
 * time the level. As long as no switch may be, it does what the phases that it has can do: never more than is asked.
 */
export function phased(verdict: Verdict, last: CommandRecord | undefined, now: Instant): Phased {
  const { phases, until, charger } = verdict;
  const { phaseSwitching } = charger;
  if (phases === null || phaseSwitching === null || until === null) return { verdict, evaluateAt: null };
  const told = toldBefore(last, phaseSwitching, now);
  const count = told?.count ?? ALL;
  const here = phases.on[count];
  const { best } = phases;
  const to = (desired: Desired, limits: readonly Limit[], lookAt: Instant | null): Phased => ({
    verdict: { ...verdict, desired, limits },
    evaluateAt: lookAt,
  });
  const switchAt =
    best === null || best === count
      ? null
      : whenToSwitch(best, told ?? NEVER, until, { ...phaseSwitching, minOn: charger.minOn }, now);
  if (best !== null && switchAt !== null && switchAt <= now) {
    const limits = [...phases.on[best].limits, pausedFor(best)];
    const restedAt = whenRested(last, phaseSwitching, now);
    if (restedAt > now) return to(paused(told), limits, restedAt);
    const switched = { count: best, since: now, chargingSince: null };
    return to(paused(switched), limits, after(now, phaseSwitching.deadTime));
  }
  const deadUntil = after(switchedAt(told ?? NEVER, last, now), phaseSwitching.deadTime);
  if (deadUntil > now && here.desired.kind !== "pause")
    return to(paused(told), [...here.limits, pausedFor(count)], deadUntil);
  const waits: readonly Limit[] =
    best === null || switchAt === null
      ? []
      : [{ by: "phase interval", asked: formatPhases(best), allowed: formatLevel(here.desired) }];
  return to(keeping(here.desired, told, last, now), [...here.limits, ...waits], switchAt);
}

const pausedFor = (count: PhaseCount): Limit => ({
  by: "phase switch",
  asked: formatPhases(count),
  allowed: "pause",
});

const paused = (told: SwitchedTo | null): Desired =>
  told === null ? { kind: "pause" } : { kind: "pause", phases: { ...told, chargingSince: null } };

/** The same level, with what is known of the last switch carried on. */
function keeping(
  desired: Desired,
  told: SwitchedTo | null,
  last: CommandRecord | undefined,
  now: Instant,
): Desired {
  if (told === null || desired.kind === "release") return desired;
  if (desired.kind === "pause") return paused(told);
  const goesOn = last?.command.desired.kind !== "pause" && told.chargingSince !== null;
  return { ...desired, phases: { ...told, chargingSince: goesOn ? told.chargingSince : now } };
}

/** Of the last switch; null: it has all its phases, and has had them for so long that nothing waits for it. */
function toldBefore(
  last: CommandRecord | undefined,
  { every }: PhaseSwitching,
  now: Instant,
): SwitchedTo | null {
  const told = last === undefined ? null : toldIn(last);
  if (told === null) return null;
  const [since, chargingSince] = [past(told.since, now), told.chargingSince && past(told.chargingSince, now)];
  return told.count === ALL && after(since, every) <= now ? null : { ...told, since, chargingSince };
}

/** The dead time counts from when the switch first went out; one that has not yet is still to come. */
function switchedAt({ since }: SwitchedTo, last: CommandRecord | undefined, now: Instant): Instant {
  if (last === undefined || last.progress === "observed" || last.command.desired.kind !== "pause")
    return since;
  const before = last.replaces === null ? null : switchedIn(last.replaces);
  const isSwitch = (switchedIn(last.command.desired)?.count ?? ALL) !== (before?.count ?? ALL);
  return isSwitch ? past(firstOut(last) ?? now, now) : since;
}

const firstOut = ({ outAt, sentAt }: CommandRecord): Instant | null => outAt ?? sentAt;

/** A release gives all phases back, which is a switch too. */
function toldIn({ command: { desired, decidedAt }, replaces }: CommandRecord): SwitchedTo | null {
  const before = desired.kind !== "release" || replaces === null ? null : switchedIn(replaces);
  if (before === null) return switchedIn(desired);
  return { count: ALL, since: before.count === ALL ? before.since : decidedAt, chargingSince: null };
}

/** The clock was set back behind it: nobody knows how long ago it was. */
const past = (at: Instant, now: Instant): Instant => (at > now ? instant(0) : at);

/** When a switch may begin; null: not in this window. */
function whenToSwitch(
  best: PhaseCount,
  { since, chargingSince }: SwitchedTo,
  until: Instant,
  { every, settle, minOn }: PhaseSwitching & Pick<Charger, "minOn">,
  now: Instant,
): Instant | null {
  const at = after(since, every);
  // Only for more power: less never waits for the least time of charging.
  if (best === ALL) return chargingSince === null ? at : later(at, after(chargingSince, minOn));
  // With the end of the window comes the switch back, which is not to wait.
  return after(after(later(at, now), settle), every) <= until ? at : null;
}

/** When it has been paused for long enough to be switched: that it is must have arrived, and nothing speak against it. */
function whenRested(last: CommandRecord | undefined, { settle }: PhaseSwitching, now: Instant): Instant {
  if (last?.command.desired.kind !== "pause") return after(now, settle);
  const { progress, command } = last;
  const isDoubtful = progress === "planned" || progress === "refused" || progress === "notFollowed";
  return isDoubtful
    ? after(now, settle > 0 ? settle : seconds(1))
    : after(past(firstOut(last) ?? command.decidedAt, now), settle);
}
