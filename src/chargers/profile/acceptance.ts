import type { Desired } from "../../domain/setpoint.ts";
import { after, instant, type Instant, minutes, type Millis } from "../../domain/units.ts";
import { confirmation, doubts, MEASURED } from "./driverState.ts";
import type { ProfileInstance } from "./instance.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";
import type { Reported } from "./reported.ts";
import type { Profile } from "./schema.ts";
import type { Signals } from "./signals.ts";

/** How far the verdict on a setpoint can go with what a make tells. */
export type Reach =
  /** It reports what it draws: followed, or not. */
  | "measured"
  /** It repeats the limit, or says whether it charges: accepted, and a pause can be seen. */
  | "reported"
  /** It says nothing: a setpoint is sent, and that is all one knows. */
  | "sent";

export function reachOf({ telemetry, nativePayloads }: Profile): Reach {
  const tells = (...signals: readonly (keyof typeof telemetry)[]): boolean =>
    signals.some((signal) => telemetry[signal] !== undefined);
  if (nativePayloads || tells("powerW", "currentA", "currentsA")) return "measured";
  return tells("limitA", "requestedA", "charging", "paused", "state") ? "reported" : "sent";
}

/** For people. */
export function describeReach(reach: Reach): string {
  switch (reach) {
    case "measured":
      return "measured: it reports what it draws, so a setpoint ends as followed or not followed";
    case "reported":
      return "reported: it repeats its limit or state, but not what it draws, so a setpoint ends as accepted";
    case "sent":
      return "sent: it says nothing, so nobody knows whether a setpoint was followed";
  }
}

/** Whether a charger shows by now that it took a command. */
export function isAccepted(
  desired: Desired,
  standing: Signals,
  bound: ProfileInstance,
  reported: Reported,
): boolean {
  const released = desired.kind === "release" ? reported.release(bound) : null;
  return released === null ? confirmation(desired, standing, bound) === true : released.isShown;
}

/** Why a command that was not confirmed in time counts as not taken. Null: it does not, or the make does not show it. */
export function refusalOf(
  desired: Desired,
  standing: Signals,
  bound: ProfileInstance,
  reported: Reported,
): string | null {
  const { confirmedBy } = bound.profile;
  if (confirmedBy === undefined) return null;
  if (desired.kind === "current") return doubts(desired.amperes, confirmedBy, standing, bound);
  const released = desired.kind === "release" ? reported.release(bound) : null;
  return released === null || released.isShown
    ? null
    : `not confirmed within ${confirmedBy.within / 1000} s, ${released.words}`;
}

/** Somebody who overwrites each command again is a matter for the verdict, which counts and alarms. */
const AT_MOST_EVERY = minutes(1);

/** Notices when a charger that has shown a command shows something else. */
export class Overwritten {
  readonly #shownOn: ReadonlyMap<string, string>;
  /** What is shown on a topic once the command has arrived, and whether it was shown since. */
  readonly #expected = new Map<string, { readonly payload: string; readonly isShown: boolean }>();
  #noticedAt = instant(0);

  constructor({ profile, values }: ProfileInstance) {
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

/** Measured values of makes that publish them one by one: judged when the burst is over, new power never beside old currents. */
export class Settling implements Disposable {
  readonly #within: Millis | undefined;
  readonly #settled: () => void;
  #judged: Signals = {};
  #timer: NodeJS.Timeout | undefined;

  constructor(within: Millis | undefined, settled: () => void) {
    this.#within = within;
    this.#settled = settled;
  }

  /** `means`: what a live message says. */
  hear(means: Signals, standing: () => Signals): void {
    if (this.#within === undefined || this.#timer !== undefined) return;
    if (!MEASURED.some((signal) => signal in means)) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#judged = measuredIn(standing());
      this.#settled();
    }, this.#within);
  }

  /** What stands, with the measured values that may be judged. */
  judged(standing: Signals): Signals {
    return this.#within === undefined ? standing : { ...without(standing), ...this.#judged };
  }

  /** What was measured before a command says nothing of it. */
  forget(): void {
    this.#judged = {};
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

const isMeasured = (signal: string): boolean => MEASURED.some((one) => one === signal);

const measuredIn = (means: Signals): Signals =>
  Object.fromEntries(Object.entries(means).filter(([signal]) => isMeasured(signal)));

const without = (means: Signals): Signals =>
  Object.fromEntries(Object.entries(means).filter(([signal]) => !isMeasured(signal)));
