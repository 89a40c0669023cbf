import type { ProfileInstance } from "./instance.ts";
import { renderText } from "./render.ts";

interface Source {
  readonly name: string;
  readonly topic: string;
  readonly pattern: RegExp;
  readonly isTaken: boolean;
  readonly keeps: string | undefined;
}

/** Values that a charger reported and that are sent back to it: the latest, and those from before control was taken. */
export class Reported {
  readonly #sources: readonly Source[];
  readonly #latest = new Map<string, string>();
  readonly #taken = new Map<string, string>();

  constructor({ profile, values }: ProfileInstance) {
    this.#sources = Object.entries(profile.reports).map(([name, { topic, pattern, when, keeps }]) => ({
      name,
      topic: renderText(topic, values),
      pattern: new RegExp(`^(?:${pattern})$`, "u"),
      isTaken: when === "taken",
      keeps,
    }));
  }

  /** `isLevel`: the charger is under a level of ours now, so that a value to keep is not ours. */
  hear(topic: string, payload: string, isLevel: boolean): void {
    const text = payload.trim();
    for (const { name, topic: its, pattern, isTaken, keeps } of this.#sources) {
      if (its !== topic || !pattern.test(text)) continue;
      const isNew = this.#latest.get(name) !== text;
      this.#latest.set(name, text);
      if (isTaken && isLevel && isNew && text === keeps) this.#taken.set(name, text);
    }
  }

  /** The first command after a release: what holds now is the owner's. */
  take(): void {
    this.#taken.clear();
    for (const { name, isTaken } of this.#sources) {
      const latest = this.#latest.get(name);
      if (isTaken && latest !== undefined) this.#taken.set(name, latest);
    }
  }

  /** For the templates. */
  get values(): ReadonlyMap<string, string> {
    return new Map(
      this.#sources.flatMap(({ name, isTaken }) => {
        const value = (isTaken ? this.#taken : this.#latest).get(name);
        return value === undefined ? [] : [[name, value] as const];
      }),
    );
  }

  /** Whether the charger shows that it was given back to what it was. Null: this make does not show it. */
  release({
    profile,
    values,
  }: ProfileInstance): { readonly isShown: boolean; readonly words: string } | null {
    const name = profile.confirmedBy?.release;
    if (name === undefined) return null;
    const otherwise = profile.reports[name]?.otherwise ?? "";
    const wanted = this.#taken.get(name) ?? renderText(otherwise, values);
    const seen = this.#latest.get(name);
    return { isShown: seen === wanted, words: `it repeats ${seen ?? "nothing"} instead of ${wanted}` };
  }
}
