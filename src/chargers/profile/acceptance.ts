import { after, instant, type Instant, isOpenAt, minutes, type Millis } from "../../domain/units.ts";
import { confirmation, doubts, keepsPause, type LastCommand, MEASURED, repeatsLevel } from "./driverState.ts";
import type { ProfileInstance } from "./instance.ts";
import type { Publish } from "./publishes.ts";
import { renderText } from "./render.ts";
import type { Reported } from "./reported.ts";
import type { Profile } from "./schema.ts";
import type { Signals } from "./signals.ts";

/** The best verdict on a setpoint that the telemetry of a profile allows. */
export type BestVerdict =
  /** The charger reports its power or current: followed, or not followed. */
  | "measured"
  /** The charger reports its limit or its state: accepted, and a pause can be verified. */
  | "reported"
  /** The charger reports none of these: sent is the last state. */
  | "sent";

/** Verdict by the signals that the profile reads. */
export function bestVerdictOf({ telemetry, nativePayloads }: Profile): BestVerdict {
  const reports = (...signals: readonly (keyof typeof telemetry)[]): boolean =>
    signals.some((signal) => telemetry[signal] !== undefined);
  if (nativePayloads || reports("powerW", "currentA", "currentsA")) return "measured";
  return reports("limitA", "requestedA", "charging", "paused", "state") ? "reported" : "sent";
}

/** For people. */
export function describeBestVerdict(reach: BestVerdict): string {
  switch (reach) {
    case "measured":
      return "measured: it reports its power or current, so a setpoint ends as followed or not followed";
    case "reported":
      return "reported: it reports its limit or state, but neither power nor current, so a setpoint ends as accepted";
    case "sent":
      return "sent: it reports nothing, so it stays unknown whether a setpoint was followed";
  }
}

/** True: the signals show that the charger accepted the command. */
export function showsAcceptance(
  last: LastCommand,
  signals: Signals,
  instance: ProfileInstance,
  reported: Reported,
): boolean {
  const released = last.desired.kind === "release" ? reported.release(instance) : null;
  return released === null ? confirmation(last, signals, instance) === true : released.isShown;
}

/** Time after which a command without confirmation or answer counts as refused. Undefined: it never does. */
export const judgedAfter = ({ confirmedBy, results }: Profile): Millis | undefined =>
  confirmedBy?.within ?? results.find(({ within }) => within !== undefined)?.within;

/**
 * Reason why a command without confirmation or answer counts as refused, after `judgedAfter`. Null: no refusal.
 * `lost`: the charger keeps the pause that the command was to end, so it is sent again.
 */
export function refusalOf(
  { desired, endsPause }: LastCommand,
  signals: Signals,
  instance: ProfileInstance,
  reported: Reported,
): { readonly reason: string } | "lost" | null {
  const { confirmedBy } = instance.profile;
  if (confirmedBy === undefined)
    return { reason: `no answer within ${(judgedAfter(instance.profile) ?? 0) / 1000} s` };
  if (desired.kind === "current") {
    if (repeatsLevel(desired.amperes, confirmedBy, signals, instance))
      return keepsPause(endsPause, signals) && signals.plugged !== false ? "lost" : null;
    const reason = doubts(desired.amperes, confirmedBy, signals, instance);
    return reason === null ? null : { reason };
  }
  const released = desired.kind === "release" ? reported.release(instance) : null;
  return released === null || released.isShown
    ? null
    : { reason: `not confirmed within ${confirmedBy.within / 1000} s, ${released.detail}` };
}

/** Limit on resends. Constant overwriting is left to the verdict, which raises an alarm. */
const AT_MOST_EVERY = minutes(1);

/** Detects that a charger showed a command, and then another value. */
export class Overwritten {
  readonly #shownOn: ReadonlyMap<string, string>;
  /** Payload that a topic shows once the command has arrived. `isShown`: it has been shown since. */
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

  /** True: this live message shows that a command was overwritten. */
  isBy(topic: string, text: string, now: Instant): boolean {
    const expected = this.#expected.get(topic);
    if (expected === undefined) return false;
    const { payload } = expected;
    if (isSame(text.trim(), payload)) {
      this.#expected.set(topic, { payload, isShown: true });
      return false;
    }
    // A lower limit set by another controller is respected.
    if (Number(text) < Number(payload)) return false;
    // A notice dated ahead is from before the clock was set back.
    const pause = { from: this.#noticedAt, until: after(this.#noticedAt, AT_MOST_EVERY) };
    if (!expected.isShown || isOpenAt(pause, now)) return false;
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

/**
 * Judges measured values only after a burst, for chargers that publish them one by one: never new power
 * with old currents.
 */
export class Settling implements Disposable {
  readonly #within: Millis | undefined;
  readonly #settled: () => void;
  #judged: Signals = {};
  #timer: NodeJS.Timeout | undefined;

  constructor(within: Millis | undefined, settled: () => void) {
    this.#within = within;
    this.#settled = settled;
  }

  /** `message`: signals of a live message. */
  record(message: Signals, signals: () => Signals): void {
    if (this.#within === undefined || this.#timer !== undefined) return;
    if (!MEASURED.some((signal) => signal in message)) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#judged = measuredIn(signals());
      this.#settled();
    }, this.#within);
  }

  /** Current signals, with only those measured values that may be judged. */
  judged(signals: Signals): Signals {
    return this.#within === undefined ? signals : { ...without(signals), ...this.#judged };
  }

  /** Call at a new command: earlier measurements do not count for it. */
  forget(): void {
    this.#judged = {};
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

const isMeasured = (signal: string): boolean => MEASURED.some((one) => one === signal);

const measuredIn = (signals: Signals): Signals =>
  Object.fromEntries(Object.entries(signals).filter(([signal]) => isMeasured(signal)));

const without = (signals: Signals): Signals =>
  Object.fromEntries(Object.entries(signals).filter(([signal]) => !isMeasured(signal)));
