import type { ProfileInstance } from "./instance.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";

/** Live echoes of commands: a payload that the charger already shows is not published again. */
export class Echoes {
  /** Command topic to the topic that shows it. */
  readonly #shownOn: ReadonlyMap<string, string>;
  readonly #shown = new Map<string, string>();
  /** Last payload published, by topic. */
  readonly #published = new Map<string, string>();

  constructor({ profile, values }: ProfileInstance) {
    this.#shownOn = new Map(
      profile.echoes.map(({ told, shown }) => [renderText(told, values), renderText(shown, values)]),
    );
  }

  record(topic: string, payload: string): void {
    if (this.#shownOn.values().some((shownOn) => shownOn === topic)) this.#shown.set(topic, payload.trim());
  }

  /**
   * True: publish it. An echo may have left the charger before our last publish arrived, so it counts only if that
   * publish had the same payload.
   */
  isNeeded({ topic, payload }: Publish): boolean {
    const shownOn = this.#shownOn.get(topic);
    if (shownOn === undefined) return true;
    const last = this.#published.get(topic) ?? payload;
    if (this.#shown.get(shownOn) === payload && last === payload) return false;
    this.#shown.delete(shownOn);
    this.#published.set(topic, payload);
    return true;
  }

  forget(): void {
    this.#shown.clear();
    this.#published.clear();
  }
}
