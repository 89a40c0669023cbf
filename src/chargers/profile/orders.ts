import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import type { Instant } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import type { Profile } from "./schema.ts";
import { allowedCurrent, allowedPower, maxCurrent } from "./level.ts";
import { type Action, type Publish, publishesFor } from "./publishes.ts";
import { placeholdersIn } from "./render.ts";

/**
 * The life of a pause.
 *
 * ```
 *          pause                  level or release             charger reports that it may charge
 *   none ----------> sent -----------------------------> ending ---------------------------------> none
 *                     ^                                    |
 *                     +---------------- pause -------------+
 * ```
 *
 * In "ending" each level repeats the resume: the charger may have been offline when it was first sent.
 */
export type Pause = "sent" | "ending" | "none";

/** Our control over a charger, as far as the next command depends on it. */
export interface DriverKnowledge {
  /** True: control was taken since the charger last came online. */
  readonly acquired: boolean;
  readonly pause: Pause;
  /** Phases that we switched to. Null: not known. */
  readonly phases: number | null;
  /** True: the command switches them. Absent: it does not. */
  readonly switches?: boolean;
}

/** Publishes in their order. `after` holds once the broker has all of them. */
export interface Ordered {
  readonly publishes: readonly Publish[];
  readonly after: DriverKnowledge;
}

type Orders =
  | ({ readonly ok: true } & Ordered)
  /** The charger make cannot do it. */
  | { readonly ok: false; readonly reason: string };

/**
 * All publishes that bring a charger from its present state to the desired one.
 *
 * - Taking control comes first. It comes last where taking control starts charging (`acquireCharges`).
 * - A limit comes before the resume. It comes after it where the resume restores an old limit (`resumeSetsLimit`).
 * - The resume goes with every level until the charger reports that it may charge.
 * - A release ends the pause first, unless the release itself does (`releaseEndsPause`).
 * - A release raises a limit that would stay (`releaseKeepsLimit`).
 * - Phases are switched in a pause only. A release restores all phases.
 */
export function ordersFor(
  desired: Desired,
  known: DriverKnowledge,
  instance: ProfileInstance,
  now: Instant,
): Orders {
  const step = stepOf(desired, instance);
  const phases = phasesFor(desired, known, instance);
  const publishes: Publish[] = [];
  let switching: readonly Publish[] = [];
  const actions = inControl(onPhases(phases, step, known, instance), step, known, instance);
  for (const action of actions) {
    const answer = publishesFor(action, instance, now);
    if (!answer.ok) return answer;
    // Watts and amperes may share a topic. The resume would replace the watts by amperes.
    const watts =
      action.kind === "resume" && step.kind === "setPower" && instance.profile.limits.power !== undefined;
    if (action.kind === "setPhases") switching = answer.publishes;
    // Phases reported before a switch would undo it. The owner's phases are restored by the release.
    const undone = action.kind === "setPhases" || action.kind === "release" ? [] : switching;
    const skipped = new Set([...(watts ? publishes : []), ...undone].map(({ topic }) => topic));
    publishes.push(...answer.publishes.filter(({ topic }) => !skipped.has(topic)));
  }
  return {
    ok: true,
    publishes: withoutRepeats(publishes),
    after: {
      acquired: step.kind !== "release",
      pause: pauseAfter(step, known, actions),
      phases,
      ...(actions.some(({ kind }) => kind === "setPhases") ? { switches: true } : {}),
    },
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
  // Taking control first would allow charging for a moment.
  if (step.kind === "pause" && pauseTakesControl(profile)) return actions;
  if (!profile.acquireCharges) return acquired ? actions : [...acquire, ...actions];
  // The pause took control from its previous holder; the message that ends it takes control for us.
  return step.kind === "pause" || (acquired && pause === "none") ? actions : [...actions, ...acquire];
}

/** True: the pause is published on the topics that take control, with another payload. */
const pauseTakesControl = ({ actions: { acquire, pause } }: Profile): boolean =>
  acquire.every(({ topic }) => pause.some((other) => other.topic === topic));

function pauseAfter(step: Step, { pause }: DriverKnowledge, actions: readonly Action[]): Pause {
  if (step.kind === "pause") return "sent";
  return pause === "none" && !actions.some(({ kind }) => kind === "pause") ? "none" : "ending";
}

type Step =
  | { readonly kind: "setCurrent"; readonly currentA: number }
  | { readonly kind: "setPower"; readonly powerW: number; readonly isDecided: true }
  | { readonly kind: "pause" | "release" };

/** The desired setpoint as one step. A level below the minimum of the charger is a pause. */
function stepOf(desired: Desired, instance: ProfileInstance): Step {
  switch (desired.kind) {
    case "current": {
      const currentA = allowedCurrent(desired.amperes, instance);
      return currentA === null ? { kind: "pause" } : { kind: "setCurrent", currentA };
    }
    case "power":
      return allowedPower(desired.watts, instance, true) === null
        ? { kind: "pause" }
        : { kind: "setPower", powerW: desired.watts, isDecided: true };
    case "pause":
    case "release":
      return { kind: desired.kind };
  }
}

/** Phases after the command. Null: not known, and none were asked for. */
function phasesFor(desired: Desired, known: DriverKnowledge, { electrics }: ProfileInstance): number | null {
  if (desired.kind === "release") return known.phases === null ? null : electrics.phases;
  return switchedIn(desired)?.count ?? known.phases;
}

function onPhases(
  phases: number | null,
  step: Step,
  known: DriverKnowledge,
  instance: ProfileInstance,
): readonly Action[] {
  const asBefore = inOrder(step, known.pause !== "none", instance);
  if (phases === null) return asBefore;
  const switched = (lastCurrentA: number | null): Action => ({ kind: "setPhases", phases, lastCurrentA });
  if (placeholdersIn(instance.profile.actions.setPhases ?? []).includes("current")) {
    // Phases and amperes share one message; amperes alone would lift the limit on phases.
    return step.kind === "setCurrent"
      ? asBefore.map((action) => (action === step ? switched(step.currentA) : action))
      : asBefore;
  }
  if (phases === known.phases) return asBefore;
  if (step.kind === "pause") return [step, switched(null)];
  const pause: readonly Action[] = known.pause === "sent" ? [] : [{ kind: "pause" }];
  return [...pause, switched(null), ...inOrder(step, true, instance)];
}

function inOrder(step: Step, paused: boolean, instance: ProfileInstance): readonly Action[] {
  const resume = (lastCurrentA: number): readonly Action[] =>
    paused && !instance.profile.levelEndsPause ? [{ kind: "resume", lastCurrentA }] : [];
  const withLevel = (resumed: readonly Action[]): readonly Action[] =>
    instance.profile.resumeSetsLimit ? [...resumed, step] : [step, ...resumed];
  switch (step.kind) {
    case "setCurrent":
      return withLevel(resume(step.currentA));
    case "setPower": {
      const level = allowedPower(step.powerW, instance, true);
      // The limit in amperes must not be the lower one of two separate limits.
      return withLevel(resume(level?.kind === "current" ? level.amperes : maxCurrent(instance)));
    }
    case "pause":
      return [step];
    case "release":
      return [
        ...(instance.profile.releaseEndsPause ? [] : resume(maxCurrent(instance))),
        step,
        ...(instance.profile.releaseKeepsLimit && !instance.reported.has(instance.profile.ownLimit ?? "")
          ? [{ kind: "setCurrent", currentA: maxCurrent(instance) } as const]
          : []),
      ];
  }
}

/** Keeps only the last of identical messages. */
const withoutRepeats = (publishes: readonly Publish[]): readonly Publish[] =>
  publishes.filter(
    ({ topic, payload }, index) =>
      !publishes.slice(index + 1).some((later) => later.topic === topic && later.payload === payload),
  );
