import type { JudgeSettings } from "../control/observe/compliance.ts";
import type { Charger } from "../domain/charger.ts";
import type { Sent } from "../domain/command.ts";
import { type Desired, formatLevel, type Setpoint } from "../domain/setpoint.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { type Instant, type Millis, between, millis, minutes, seconds } from "../domain/units.ts";
import {
  afterSilence,
  drawnBy,
  type Effect,
  effectOf,
  hasArrived,
  type SilenceEffect,
  trialLevels,
} from "./judgement.ts";

/** The state of a charger before the trial. It is restored afterwards. */
export interface PriorState {
  readonly desired: Desired;
  /** Source: our own record, the charger, or none. Without one the charger is released. */
  readonly source: "record" | "charger" | "nobody";
}

/** `standing`: our active limit. `shown`: the level that the charger shows, set by anyone. Null: none. */
export function priorState(standing: Desired | null, shown: Desired | null, charger: Charger): PriorState {
  if (standing !== null) return { desired: standing, source: "record" };
  if (shown === null) return { desired: { kind: "release" }, source: "nobody" };
  const isFree =
    shown.kind === "current" && charger.maxCurrent !== null && shown.amperes >= charger.maxCurrent;
  return { desired: isFree ? { kind: "release" } : shown, source: "charger" };
}

/** Text for people, after the name of the charger. */
export function describePriorState({ desired, source }: PriorState): string {
  switch (source) {
    case "record":
      return `set to ${formatLevel(desired)} by us before`;
    case "charger":
      return desired.kind === "release" ? "free before" : `at ${formatLevel(desired)} before, not by us`;
    case "nobody":
      return "the level before is not known, so it is released";
  }
}

/** The answer of a charger to the last command. */
export interface ChargerAnswer {
  readonly accepted: boolean;
  /** Text of the charger. Null: none. */
  readonly reason: string | null;
  readonly at: Instant;
}

/** Exclusive access to one charger. Tests run it in virtual time. */
export interface Bench {
  readonly now: () => Instant;
  /** Valid for `lease` at most, if the charger supports leases. Ok: the broker has all of it. */
  readonly send: (desired: Desired, lease: Millis) => Promise<Sent>;
  /** Null: no answer to the last command. */
  readonly answer: () => ChargerAnswer | null;
  /** True: the charger has sent any message. */
  readonly hasReported: () => boolean;
  /** The latest value of each signal. Null: none yet. */
  readonly telemetry: () => Telemetry | null;
  /** Stops every message that keeps the charger obeying. Its messages are still received. */
  readonly fallSilent: () => void;
  /** Waits for a condition. False: `patience` ran out, or the trial was stopped. */
  readonly until: (condition: () => boolean, patience: Millis) => Promise<boolean>;
  /** Waits, even after Ctrl-C. */
  readonly wait: (span: Millis) => Promise<void>;
  /** True: Ctrl-C, or control took the charger back. The current step is cut short. */
  readonly isStopped: () => boolean;
  /** Reason why control took the charger back; no more commands are sent. Null: it did not. */
  readonly preemptedBy: () => string | null;
}

/** Result of one level. */
export interface Step {
  readonly level: Setpoint;
  /** Null: the broker accepted it. Otherwise the reason. */
  readonly failure: string | null;
  /** Time from the command to the charger's acceptance. Null: not accepted. */
  readonly confirmedAfter: Millis | null;
  /** True: the charger had sent any message by then. */
  readonly hasReported: boolean;
  /** Reason of the charger's refusal. Null: none. */
  readonly refusal: string | null;
  /** A per phase. Null: not reported. */
  readonly drawn: number | null;
  readonly effect: Effect;
}

/** Behaviour of a charger without messages from us. */
export interface SilencePromise {
  readonly after: Millis;
  readonly effect: Exclude<SilenceEffect, "unmeasured">;
}

/** Observed behaviour. */
export interface Silence {
  readonly promised: SilencePromise;
  readonly level: Setpoint;
  readonly seen: SilenceEffect;
  /** Time of the first change. Null: no change. */
  readonly seenAfter: Millis | null;
}

/** Outcome of a trial: its steps, and the state in which the charger was left. */
export interface Result {
  readonly steps: readonly Step[];
  /** Null: not tried. */
  readonly silence: Silence | null;
  /** Ctrl-C cut it short. */
  readonly cut: boolean;
  /** Reason why control took the charger back. Null: it did not. */
  readonly preemptedBy: string | null;
  /** The restored level, unless control took the charger back. */
  readonly left: Desired;
  /** Null: the broker accepted it. Otherwise the reason. */
  readonly leftFailure: string | null;
}

/** A charger to try, and the conditions. */
export interface Trial {
  readonly charger: Charger;
  readonly settings: JudgeSettings;
  /** Null: silence is not tried. */
  readonly silence: SilencePromise | null;
  /** Time for the charger's answer. */
  readonly answerWithin: Millis;
  /** The level to restore. */
  readonly leave: Desired;
  readonly progress: (message: string) => void;
}

/** Longer than any step: a lease must not end within one. */
const LEASE = minutes(10);
/** Extra time to watch a time-out: chargers check theirs every few seconds. */
const GRACE = seconds(15);
const RESTORING_TRIES = 5;
const RETRY = seconds(2);

/** Tries one charger, and always restores its prior state. */
export async function tryCharger(trial: Trial, bench: Bench): Promise<Result> {
  const steps: Step[] = [];
  let silence: Silence | null = null;
  let left: string | null = "not tried";
  try {
    for (const level of trialLevels(trial.charger)) {
      if (bench.isStopped()) break;
      if (steps.length > 0) await bench.until(() => false, trial.charger.minInterval);
      steps.push(await oneLevel(level, trial, bench));
    }
    const last = steps.at(-1)?.level;
    if (trial.silence !== null && last !== undefined && !bench.isStopped())
      silence = await fallSilent(last, trial.silence, trial, bench);
  } finally {
    left = await restore(trial, bench);
  }
  const [cut, preemptedBy] = [bench.isStopped(), bench.preemptedBy()];
  return { steps, silence, cut, preemptedBy, left: trial.leave, leftFailure: left };
}

async function oneLevel(level: Setpoint, trial: Trial, bench: Bench): Promise<Step> {
  const { charger, settings, answerWithin, progress } = trial;
  progress(`sending ${formatLevel(level)}`);
  const sentAt = bench.now();
  const sent = await bench.send(level, LEASE);
  if (!sent.ok) {
    const effect = { kind: "unmeasured", why: "the broker did not accept it" } as const;
    return {
      level,
      failure: sent.reason,
      confirmedAfter: null,
      hasReported: bench.hasReported(),
      refusal: null,
      drawn: null,
      effect,
    };
  }
  await bench.until(() => bench.answer() !== null, answerWithin);
  progress(`waiting up to ${settings.ramp / 1000} s for the measurement`);
  const isEmpty = (): boolean => bench.telemetry()?.state === "unplugged";
  await bench.until(
    () => isEmpty() || hasArrived(level, bench.telemetry(), charger, settings),
    settings.ramp,
  );
  const [answer, telemetry] = [bench.answer(), bench.telemetry()];
  return {
    level,
    failure: null,
    confirmedAfter: answer?.accepted === true ? between(sentAt, answer.at) : null,
    hasReported: bench.hasReported(),
    refusal: answer?.accepted === false ? (answer.reason ?? "refused") : null,
    drawn: drawnBy(telemetry, charger),
    effect: effectOf(level, telemetry, charger, settings),
  };
}

async function fallSilent(
  level: Setpoint,
  promised: SilencePromise,
  { charger, settings, progress }: Trial,
  bench: Bench,
): Promise<Silence | null> {
  const sent = await bench.send(level, promised.after);
  if (!sent.ok) return null;
  bench.fallSilent();
  const began = bench.now();
  const effect = (): SilenceEffect => afterSilence(level, bench.telemetry(), charger, settings);
  const before = effect();
  progress(
    `sending nothing for ${(promised.after + GRACE) / 1000} s at most, after sending ${formatLevel(level)}`,
  );
  const changed = await bench.until(() => effect() !== before, millis(promised.after + GRACE));
  if (bench.isStopped()) return null;
  // Levels change in steps. The final one counts.
  if (changed) await bench.wait(seconds(2));
  // A charger that paused before the silence proves nothing by a pause.
  const seen = before === "holds" ? effect() : "unmeasured";
  return { promised, level, seen, seenAfter: changed ? between(began, bench.now()) : null };
}

/**
 * Retries, because the broker may be down for a moment. The charger must not keep the trial's level, unless
 * control has it back.
 */
async function restore({ leave, progress }: Trial, bench: Bench): Promise<string | null> {
  if (bench.preemptedBy() === null) progress(`restoring: ${formatLevel(leave)}`);
  let failure = "";
  for (let tries = 0; tries < RESTORING_TRIES; tries += 1) {
    if (tries > 0) await bench.wait(RETRY);
    if (bench.preemptedBy() !== null) return null;
    const sent = await bench.send(leave, LEASE);
    if (sent.ok) return null;
    failure = sent.reason;
  }
  return failure;
}
