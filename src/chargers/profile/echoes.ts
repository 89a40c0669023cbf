import type { Bound } from "./bind.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";

/** What a charger shows live of what it was told, so that nothing is written to it that it has already. */
export class Echoes {
  /** Where it shows what it is told on a topic. */
  readonly #shownOn: ReadonlyMap<string, string>;
  readonly #shown = new Map<string, string>();
  /** What it was told last, by topic. */
  readonly #told = new Map<string, string>();

  constructor({ profile, values }: Bound) {
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
