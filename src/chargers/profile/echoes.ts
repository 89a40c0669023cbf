import { type Desired, switchedIn } from "../../domain/setpoint.ts";
import type { ProfileInstance } from "./instance.ts";
import type { Pause } from "./orders.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";
import type { Signals } from "./signals.ts";

/** What a charger shows live of what it was told, so that nothing is written to it that it has already. */
export class Echoes {
  /** Where it shows what it is told on a topic. */
  readonly #shownOn: ReadonlyMap<string, string>;
  readonly #shown = new Map<string, string>();
  /** What it was told last, by topic. */
  readonly #told = new Map<string, string>();

  constructor({ profile, values }: ProfileInstance) {
    this.#shownOn = new Map(
      profile.echoes.map(({ told, shown }) => [renderText(told, values), renderText(shown, values)]),
    );
  }

  hear(topic: string, payload: string): void {
    if (this.#shownOn.values().some((shownOn) => shownOn === topic)) this.#shown.set(topic, payload.trim());
  }

  /**
   * Whether it has to be told. What it shows may have left it before it took what it was told last: it counts only
   * where that was the same.
   */
  isNews({ topic, payload }: Publish): boolean {
    const shownOn = this.#shownOn.get(topic);
    if (shownOn === undefined) return true;
    const last = this.#told.get(topic) ?? payload;
    if (this.#shown.get(shownOn) === payload && last === payload) return false;
    this.#shown.delete(shownOn);
    this.#told.set(topic, payload);
    return true;
  }

  forget(): void {
    this.#shown.clear();
    this.#told.clear();
  }
}

/** The pause before a command. `known`: null, when this process has sent nothing yet. */
export function pauseBefore(known: Pause | null, before: Desired | null, standing: Signals): Pause {
  if (known !== null) return known;
  if (before?.kind === "pause") return "told";
  // What ended a pause may have got lost with the last run of ours; nobody is paused where nobody is.
  return standing.paused === true && standing.plugged !== false ? "ending" : "none";
}

/** Phases before a command, as far as they count for it. `known`: undefined, when this process has sent nothing yet. */
export function phasesBefore(
  known: number | null | undefined,
  desired: Desired,
  before: Desired | null,
  standing: Signals,
): number | null {
  const stored = before === null ? null : (switchedIn(before)?.count ?? null);
  const ours = known === undefined ? stored : known;
  if (desired.kind === "release") return ours ?? stored;
  const wanted = switchedIn(desired)?.count;
  // It was away, and says by itself that it still has them.
  return ours ?? (standing.phases === wanted ? (wanted ?? null) : null);
}

/** Nobody of ours held the charger, as far as is known: what it reports is its owner's. `last`: the command before. */
export function isOwners(
  desired: Desired,
  before: Desired | null,
  last: { readonly desired: Desired; readonly answered: boolean } | null,
): boolean {
  if (desired.kind === "release" || (before !== null && before.kind !== "release")) return false;
  return last === null || (last.desired.kind === "release" && last.answered);
}

/** Under a level, a charger that is switched off was not switched off by us. */
export const isLevel = (last: { readonly desired: Desired; readonly arrived: boolean } | null): boolean =>
  last !== null && last.arrived && (last.desired.kind === "current" || last.desired.kind === "power");
