import { after, instant, type Instant, minutes } from "../../core/units.ts";
import type { Bound } from "./bind.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";

/** Somebody who overwrites each command again is a matter for the verdict, which counts and alarms. */
const AT_MOST_EVERY = minutes(1);

/** Notices when a charger that has shown a command shows something else. */
export class Overwritten {
  readonly #shownOn: ReadonlyMap<string, string>;
  /** What is shown on a topic once the command has arrived, and whether it was shown since. */
  readonly #expected = new Map<string, { readonly payload: string; readonly isShown: boolean }>();
  #noticedAt = instant(0);

  constructor({ profile, values }: Bound) {
    this.#shownOn = new Map(
      profile.overwritten.map(({ told, shown }) => [renderText(told, values), renderText(shown, values)]),
    );
  }

  expect({ topic, payload }: Publish): void {
    const shown = this.#shownOn.get(topic);
    if (shown !== undefined) this.#expected.set(shown, { payload, isShown: false });
  }

  /** Whether a live message shows that a command was overwritten. */
  isBy(topic: string, text: string, now: Instant): boolean {
    const expected = this.#expected.get(topic);
    if (expected === undefined) return false;
    const { payload } = expected;
    if (isSame(text.trim(), payload)) {
      this.#expected.set(topic, { payload, isShown: true });
      return false;
    }
    // Less than was commanded is not fought.
    if (Number(text) < Number(payload)) return false;
    if (!expected.isShown || now < after(this.#noticedAt, AT_MOST_EVERY)) return false;
    this.#noticedAt = now;
    return true;
  }

  forget(): void {
    this.#expected.clear();
  }
}

/** 8 and 8.0 are one limit. */
const isSame = (shown: string, payload: string): boolean =>
  shown === payload || (shown !== "" && payload !== "" && Number(shown) === Number(payload));
