import type { ProfileInstance } from "./instance.ts";
import { renderText } from "./render.ts";

interface Source {
  readonly name: string;
  readonly topic: string;
  readonly pattern: RegExp;
  readonly isTaken: boolean;
  readonly keeps: string | undefined;
}

/** Reported values that are sent back to the charger: the latest ones, and those from before control was taken. */
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

  /** `underLevel`: a level of ours is active, so a reported value that equals `keeps` was set by the owner. */
  record(topic: string, payload: string, underLevel: boolean): void {
    const text = payload.trim();
    for (const { name, topic: source, pattern, isTaken, keeps } of this.#sources) {
      if (source !== topic || !pattern.test(text)) continue;
      const isNew = this.#latest.get(name) !== text;
      this.#latest.set(name, text);
      if (isTaken && underLevel && isNew && text === keeps) this.#taken.set(name, text);
    }
  }

  /** Call at the first command after a release: the values of now are those of the owner. */
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

  /** Shows whether the charger is back in its own mode. Null: the profile has no such topic. */
  release({
    profile,
    values,
  }: ProfileInstance): { readonly isShown: boolean; readonly detail: string } | null {
    const name = profile.confirmedBy?.release;
    if (name === undefined) return null;
    const otherwise = profile.reports[name]?.otherwise ?? "";
    const wanted = this.#taken.get(name) ?? renderText(otherwise, values);
    const seen = this.#latest.get(name);
    return { isShown: seen === wanted, detail: `it repeats ${seen ?? "nothing"} instead of ${wanted}` };
  }
}
