import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import { after, instant, type Instant, minutes } from "../../domain/units.ts";
import { isAccepted, isPublished, type Order } from "./driverState.ts";
import type { DriverKnowledge, Pause } from "./orders.ts";
import type { Signals } from "./signals.ts";

/**
 * Contact with the charger since the broker came back.
 *
 * ```
 *   quiet ----------------------> live ----------------------------> ready
 *     ^    first live message      |     first live `ready` topic      |
 *     +----------------------------+---------- broker is back ---------+
 * ```
 *
 * - quiet: publishes may have found no subscriber. The first live message loses control, so it is taken again.
 * - live: the charger publishes. A charger with a `ready` topic may still drop commands.
 * - ready: the charger obeys. A command that it has not accepted by then is asked for again. Only with a `ready` topic.
 *
 * A driver starts as live: nothing was published before it. A charger that has been silent for longer than `LONG_SILENCE` may
 * have missed a switch of phases.
 */
export class Contact {
  #state: "quiet" | "live" | "ready" = "live";
  #liveAt: Instant = instant(Infinity);

  brokerUp(): void {
    this.#state = "quiet";
  }

  onLiveMessage(control: Pick<ControlKnowledge, "lose" | "onMessage">, now: Instant): void {
    control.onMessage(now > after(this.#liveAt, LONG_SILENCE));
    this.#liveAt = now;
    if (this.#state !== "quiet") return;
    this.#state = "live";
    control.lose();
  }

  /** A live message on the `ready` topic. True: it is the first since the broker came back. */
  onReady(): boolean {
    if (this.#state === "ready") return false;
    this.#state = "ready";
    return true;
  }
}

/** Chargers that report all their values at intervals do so more often. */
const LONG_SILENCE = minutes(2);

/**
 * Commands that switch until the charger shows the phases: one repeat. A vehicle on one phase never shows three of them, and
 * each switch is a pause.
 */
const MOST_SWITCHES = 2;

/**
 * The control that this process has over one charger, as far as it knows.
 *
 * ```
 *              every publish of a command acknowledged
 *   not ours ------------------------------------------> ours
 *      ^                                                  |
 *      +---- lose(): the charger came back, restarted, ---+
 *            was overwritten, or does not follow
 * ```
 *
 * A command that is being published while control is lost does not count: part of it may have been lost.
 * The life of a pause is at `Pause`. A switch of phases is repeated, as the charger may have missed it: a level that is
 * meant for one phase lets three times its power through on three.
 */
export class ControlKnowledge {
  #isOurs = false;
  /** Null: this process has sent nothing yet. */
  #pause: Pause | null = null;
  /** Phases that we switched to. Null: none, or lost since. Undefined: this process has sent nothing yet. */
  #phases: number | null | undefined;
  /** Commands that switched to these phases since they were last in doubt. */
  #switches = 0;
  /** No message has come since the first of those. */
  #isSwitchUnanswered = false;
  #losses = 0;

  get isOurs(): boolean {
    return this.#isOurs;
  }

  /** Knowledge for the next command. `before`: the command before it. */
  forCommand(desired: Desired, before: Desired | null, signals: Signals): DriverKnowledge {
    const isDoubtful = this.#switches < MOST_SWITCHES && signals.phases !== this.#phases;
    return {
      acquired: this.#isOurs,
      pause: pauseBefore(this.#pause, before, signals),
      phases: phasesBefore(this.#phases, desired, before, signals, isDoubtful),
    };
  }

  /** Publishing starts. Call the result when the broker has acknowledged every publish. */
  publishing(after: DriverKnowledge): () => void {
    const losses = this.#losses;
    // A pause without an acknowledgement may still have arrived. A lost resume must be sent again.
    this.#pause = after.pause;
    return () => {
      if (losses !== this.#losses) return;
      this.#isOurs = after.acquired;
      if (after.phases !== this.#phases) {
        this.#switches = 0;
        this.#isSwitchUnanswered = after.switches === true;
      }
      if (after.switches === true) this.#switches += 1;
      this.#phases = after.phases;
    };
  }

  pauseIsOver(): void {
    if (this.#pause === "ending") this.#pause = "none";
  }

  losePhases(): void {
    this.#phases = null;
  }

  /** The charger sent a message. A new switch in a long silence before it may have been missed. */
  onMessage(isAfterSilence: boolean): void {
    if (isAfterSilence && this.#isSwitchUnanswered) this.#switches = 0;
    this.#isSwitchUnanswered = false;
  }

  lose(): void {
    // Some makes get their release for days. A vehicle that charges again would be paused at each return of the broker.
    if (this.#isOurs) this.#switches = 0;
    this.#isOurs = false;
    this.#losses += 1;
  }
}

/** The pause before a command. `known`: null, when this process has sent nothing yet. */
export function pauseBefore(known: Pause | null, before: Desired | null, signals: Signals): Pause {
  if (known !== null) return known;
  if (before?.kind === "pause") return "sent";
  // The last run may have lost the message that ends a pause. An empty bay has no pause to end.
  return signals.paused === true && signals.plugged !== false ? "ending" : "none";
}

/**
 * Phases before a command, as far as they count for it. `known`: undefined, when this process has sent nothing yet.
 * `isDoubtful`: the charger may have missed the switch to them.
 */
export function phasesBefore(
  known: number | null | undefined,
  desired: Desired,
  before: Desired | null,
  signals: Signals,
  isDoubtful = false,
): number | null {
  const stored = before === null ? null : (switchedIn(before)?.count ?? null);
  const ours = known === undefined ? stored : known;
  if (desired.kind === "release") return isDoubtful ? (stored ?? ours) : (ours ?? stored);
  const wanted = switchedIn(desired)?.count;
  if (wanted === undefined) return ours;
  // The charger was away, and reports that it kept them.
  return (isDoubtful && wanted === ours ? null : ours) ?? (signals.phases === wanted ? wanted : null);
}

/** True: we hold no control, so the reported values are those of the owner. `last`: the order before. */
export function isOwners(
  desired: Desired,
  before: Desired | null,
  last: Pick<Order, "desired" | "stage"> | null,
): boolean {
  if (desired.kind === "release" || (before !== null && before.kind !== "release")) return false;
  return last === null || (last.desired.kind === "release" && isAccepted(last.stage));
}

/** True: a level of ours is active. If the charger is off now, its owner switched it off. */
export const isLevel = (last: Pick<Order, "desired" | "stage"> | null): boolean =>
  last !== null &&
  isPublished(last.stage) &&
  (last.desired.kind === "current" || last.desired.kind === "power");
