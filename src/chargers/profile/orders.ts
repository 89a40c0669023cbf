import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import type { Instant } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import type { Profile } from "./schema.ts";
import { allowedCurrent, allowedPower, maxCurrent } from "./level.ts";
import { type Action, type Publish, publishesFor } from "./publishes.ts";
import { placeholdersIn } from "./render.ts";

/** "ending": it was told to go on, and has not shown yet that it does; it may not have been there to hear it. */
export type Pause = "told" | "ending" | "none";

/** What the daemon knows of how a charger stands. */
export interface DriverKnowledge {
  /** Control was taken since it last came online. */
  readonly acquired: boolean;
  readonly pause: Pause;
  /** Phases that it was switched to; null: not known. */
  readonly phases: number | null;
}

export type Orders =
  /** In this order; `standing` holds once they arrived. */
  | { readonly ok: true; readonly publishes: readonly Publish[]; readonly standing: DriverKnowledge }
  /** This make cannot do it. */
  | { readonly ok: false; readonly reason: string };

/**
 * The whole of what brings a charger from how it stands to what is desired: control is taken first, or last where that
 * starts charging, a limit is set before a pause ends, or behind it where ending it brings back an old one, and a pause
 * ends before control is given back where the make needs that. What ends a pause goes with every level until the charger
 * shows it. A limit that would stay after a release is raised. Phases are switched only in a pause, and a release gives
 * all of them back.
 */
export function ordersFor(
  desired: Desired,
  standing: DriverKnowledge,
  bound: ProfileInstance,
  now: Instant,
): Orders {
  const step = stepOf(desired, bound);
  const phases = phasesFor(desired, standing, bound);
  const publishes: Publish[] = [];
  let switching: readonly Publish[] = [];
  const actions = inControl(onPhases(phases, step, standing, bound), step, standing, bound);
  for (const action of actions) {
    const answer = publishesFor(action, bound, now);
    if (!answer.ok) return answer;
    // Watts and amperes on one topic: the resume would put amperes in the place of the watts.
    const watts =
      action.kind === "resume" && step.kind === "setPower" && bound.profile.limits.power !== undefined;
    if (action.kind === "setPhases") switching = answer.publishes;
    // Phases that a charger reported before a switch would undo it; those of its owner come with the release.
    const undone = action.kind === "setPhases" || action.kind === "release" ? [] : switching;
    const said = new Set([...(watts ? publishes : []), ...undone].map(({ topic }) => topic));
    publishes.push(...answer.publishes.filter(({ topic }) => !said.has(topic)));
  }
  return {
    ok: true,
    publishes: withoutRepeats(publishes),
    standing: { acquired: step.kind !== "release", pause: pauseAfter(step, standing, actions), phases },
  };
}

function inControl(
  actions: readonly Action[],
  step: Step,
  { acquired, pause }: DriverKnowledge,
  { profile }: ProfileInstance,
): readonly Action[] {
  const acquire: readonly Action[] = [{ kind: "acquire" }];
  if (step.kind === "release") return actions;
  // To say first that it may charge would be undone, or not, by the next message.
  if (step.kind === "pause" && pauseTakesControl(profile)) return actions;
  if (!profile.acquireCharges) return acquired ? actions : [...acquire, ...actions];
  // A pause took control away from whoever had it; what ends it takes it for us.
  return step.kind === "pause" || (acquired && pause === "none") ? actions : [...actions, ...acquire];
}

/** It says another thing on the very topics on which control is taken. */
const pauseTakesControl = ({ actions: { acquire, pause } }: Profile): boolean =>
  acquire.every(({ topic }) => pause.some((other) => other.topic === topic));

function pauseAfter(step: Step, { pause }: DriverKnowledge, actions: readonly Action[]): Pause {
  if (step.kind === "pause") return "told";
  return pause === "none" && !actions.some(({ kind }) => kind === "pause") ? "none" : "ending";
}

type Step =
  | { readonly kind: "setCurrent"; readonly currentA: number }
  | { readonly kind: "setPower"; readonly powerW: number; readonly isDecided: true }
  | { readonly kind: "pause" | "release" };

/** What is desired as the one thing to say to this charger. */
function stepOf(desired: Desired, bound: ProfileInstance): Step {
  switch (desired.kind) {
    case "current": {
      const currentA = allowedCurrent(desired.amperes, bound);
      return currentA === null ? { kind: "pause" } : { kind: "setCurrent", currentA };
    }
    case "power":
      return allowedPower(desired.watts, bound, true) === null
        ? { kind: "pause" }
        : { kind: "setPower", powerW: desired.watts, isDecided: true };
    case "pause":
    case "release":
      return { kind: desired.kind };
  }
}

/** What it has afterwards; null: nobody has asked for any, and it is not known. */
function phasesFor(
  desired: Desired,
  standing: DriverKnowledge,
  { electrics }: ProfileInstance,
): number | null {
  if (desired.kind === "release") return standing.phases === null ? null : electrics.phases;
  return switchedIn(desired)?.count ?? standing.phases;
}

function onPhases(
  phases: number | null,
  step: Step,
  standing: DriverKnowledge,
  bound: ProfileInstance,
): readonly Action[] {
  const asBefore = inOrder(step, standing.pause !== "none", bound);
  if (phases === null) return asBefore;
  const switched = (lastCurrentA: number | null): Action => ({ kind: "setPhases", phases, lastCurrentA });
  if (placeholdersIn(bound.profile.actions.setPhases ?? []).includes("current")) {
    // Phases and amperes are one message there, and amperes alone would free the phases.
    return step.kind === "setCurrent"
      ? asBefore.map((action) => (action === step ? switched(step.currentA) : action))
      : asBefore;
  }
  if (phases === standing.phases) return asBefore;
  if (step.kind === "pause") return [step, switched(null)];
  const pause: readonly Action[] = standing.pause === "told" ? [] : [{ kind: "pause" }];
  return [...pause, switched(null), ...inOrder(step, true, bound)];
}

function inOrder(step: Step, paused: boolean, bound: ProfileInstance): readonly Action[] {
  const resume = (lastCurrentA: number): readonly Action[] =>
    paused && !bound.profile.levelEndsPause ? [{ kind: "resume", lastCurrentA }] : [];
  const withLevel = (resumed: readonly Action[]): readonly Action[] =>
    bound.profile.resumeSetsLimit ? [...resumed, step] : [step, ...resumed];
  switch (step.kind) {
    case "setCurrent":
      return withLevel(resume(step.currentA));
    case "setPower": {
      const level = allowedPower(step.powerW, bound, true);
      // Where watts are a limit of their own, that in amperes must not be the lower one.
      return withLevel(resume(level?.kind === "current" ? level.amperes : maxCurrent(bound)));
    }
    case "pause":
      return [step];
    case "release":
      return [
        ...(bound.profile.releaseEndsPause ? [] : resume(maxCurrent(bound))),
        step,
        ...(bound.profile.releaseKeepsLimit && !bound.reported.has(bound.profile.ownLimit ?? "")
          ? [{ kind: "setCurrent", currentA: maxCurrent(bound) } as const]
          : []),
      ];
  }
}

/** Of identical messages the last is enough. */
const withoutRepeats = (publishes: readonly Publish[]): readonly Publish[] =>
  publishes.filter(
    ({ topic, payload }, index) =>
      !publishes.slice(index + 1).some((later) => later.topic === topic && later.payload === payload),
  );
