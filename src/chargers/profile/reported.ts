import type { OwnValues } from "../../domain/command.ts";
import type { ProfileInstance } from "./instance.ts";
import { isNothing, parsed, textOf, valueAt } from "./payload.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";

interface Source {
  readonly name: string;
  readonly topic: string;
  /** Undefined: plain text. */
  readonly path: string | undefined;
  readonly pattern: RegExp;
  readonly isTaken: boolean;
  readonly keeps: string | undefined;
}

/** Null: nothing readable is there. */
const textAt = (payload: string, path: string | undefined): string | null =>
  textOf(path === undefined ? payload : (valueAt(parsed(payload) ?? null, path, null) ?? null));

/** Reported values that are sent back to the charger: the latest ones, and those from before control was taken. */
export class Reported {
  readonly #sources: readonly Source[];
  readonly #latest = new Map<string, string>();
  readonly #taken = new Map<string, string>();

  constructor({ profile, values }: ProfileInstance) {
    this.#sources = Object.entries(profile.reports).map(([name, { topic, path, pattern, when, keeps }]) => ({
      name,
      topic: renderText(topic, values),
      path,
      pattern: new RegExp(`^(?:${pattern})$`, "u"),
      isTaken: when === "taken",
      keeps,
    }));
  }

  /** `underLevel`: a level of ours is active, so a reported value that equals `keeps` was set by the owner. */
  record(topic: string, payload: string, underLevel: boolean): void {
    for (const { name, topic: source, path, pattern, isTaken, keeps } of this.#sources) {
      const value = source === topic ? textAt(payload, path) : null;
      if (value === null || isNothing(value)) continue;
      const found = pattern.exec(value);
      if (found === null) {
        // A value that cannot be restored has replaced the one before it.
        this.#latest.delete(name);
        continue;
      }
      const text = found[1] ?? found[0];
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

  /** The values that were taken. Undefined: none is known. */
  get own(): OwnValues | undefined {
    return this.#taken.size === 0 ? undefined : Object.fromEntries(this.#taken);
  }

  /** Restores stored values, at the first command after a restart. A value of another make that had this place does not fit. */
  restore(own: OwnValues = {}): void {
    for (const { name, isTaken, pattern } of this.#sources) {
      const value = own[name];
      if (isTaken && value !== undefined && pattern.test(value)) this.#taken.set(name, value);
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

  /**
   * Shows whether the charger is back in its own mode, with its own limit. The mode may be the one that commands use, so it
   * alone shows no release. Null: the profile has no such topic.
   */
  release({
    profile,
    values,
  }: ProfileInstance): { readonly isShown: boolean; readonly detail: string } | null {
    const name = profile.confirmedBy?.release;
    if (name === undefined) return null;
    const otherwise = profile.reports[name]?.otherwise ?? "";
    const limit = this.#taken.get(profile.ownLimit ?? "");
    const wanted = new Map([[name, this.#taken.get(name) ?? renderText(otherwise, values)]]);
    if (profile.ownLimit !== undefined && limit !== undefined) wanted.set(profile.ownLimit, limit);
    const differing = [...wanted].find(([report, value]) => this.#latest.get(report) !== value);
    if (differing === undefined) return { isShown: true, detail: "" };
    const [report, value] = differing;
    return {
      isShown: false,
      detail: `it repeats ${this.#latest.get(report) ?? "nothing"} instead of ${value}`,
    };
  }
}

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
