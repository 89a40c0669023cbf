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

/** How a charger stood before it was tried, which is how it is left. */
export interface PriorState {
  readonly desired: Desired;
  /** Who knows: our own record, the charger, or nobody, and then it is released. */
  readonly source: "record" | "charger" | "nobody";
}

/** `standing`: the limit of ours that it is under; `shown`: the level that it shows, whoever told it. Null: none. */
export function priorState(standing: Desired | null, shown: Desired | null, charger: Charger): PriorState {
  if (standing !== null) return { desired: standing, source: "record" };
  if (shown === null) return { desired: { kind: "release" }, source: "nobody" };
  const isFree =
    shown.kind === "current" && charger.maxCurrent !== null && shown.amperes >= charger.maxCurrent;
  return { desired: isFree ? { kind: "release" } : shown, source: "charger" };
}

/** For people: after the name of the charger. */
export function describePriorState({ desired, source }: PriorState): string {
  switch (source) {
    case "record":
      return `told ${formatLevel(desired)} before`;
    case "charger":
      return desired.kind === "release" ? "free before" : `at ${formatLevel(desired)} before, not by us`;
    case "nobody":
      return "what held before is not known, so it is released";
  }
}

/** How a charger took the last order. */
export interface OrderOutcome {
  readonly accepted: boolean;
  /** Its own words; null: it gave none. */
  readonly reason: string | null;
  readonly at: Instant;
}

/** One charger with nobody else talking to it. In the tests time is virtual behind it. */
export interface Bench {
  readonly now: () => Instant;
  /** For `lease` at most, where the charger knows leases. Ok: the broker has all of it. */
  readonly order: (desired: Desired, lease: Millis) => Promise<Sent>;
  /** Null: it has not answered the last order. */
  readonly taken: () => OrderOutcome | null;
  /** Whether it has sent anything at all. */
  readonly heard: () => boolean;
  /** All that it has told, the newest of each; null: nothing yet. */
  readonly told: () => Telemetry | null;
  /** Nothing is said any more that would keep it obeying; what it says is still heard. */
  readonly fallSilent: () => void;
  /** Until the condition holds; false: patience has run out, or `stop` was asked. */
  readonly until: (condition: () => boolean, patience: Millis) => Promise<boolean>;
  /** Lets so much time pass, Ctrl-C or not. */
  readonly rest: (span: Millis) => Promise<void>;
  /** Somebody pressed Ctrl-C, or it is taken away: what is under way is cut short. */
  readonly isStopped: () => boolean;
  /** Why control has taken the charger for itself: it is told nothing more. Null: it has not. */
  readonly preemptedBy: () => string | null;
}

/** What became of one level. */
export interface Step {
  readonly level: Setpoint;
  /** Null: the broker took it; else why it did not. */
  readonly failure: string | null;
  /** From the order to the charger's own yes; null: it said none. */
  readonly confirmedAfter: Millis | null;
  /** Whether anything at all was heard of the charger by then. */
  readonly heard: boolean;
  /** The charger's no. */
  readonly refusal: string | null;
  /** A per phase; null: it does not tell. */
  readonly drawn: number | null;
  readonly effect: Effect;
}

/** What a charger does by itself when it hears no more of us. */
export interface SilencePromise {
  readonly after: Millis;
  readonly effect: Exclude<SilenceEffect, "unmeasured">;
}

/** What it did. */
export interface Silence {
  readonly promised: SilencePromise;
  readonly level: Setpoint;
  readonly seen: SilenceEffect;
  /** When that was first seen; null: to the end nothing changed. */
  readonly seenAfter: Millis | null;
}

export interface Result {
  readonly steps: readonly Step[];
  /** Null: not tried. */
  readonly silence: Silence | null;
  /** Ctrl-C cut it short. */
  readonly cut: boolean;
  /** Why control took it for itself meanwhile; null: it did not. */
  readonly preemptedBy: string | null;
  /** What it was left with, unless it was taken. */
  readonly left: Desired;
  /** Null: the broker took that; else why not. */
  readonly leftFailure: string | null;
}

export interface Trial {
  readonly charger: Charger;
  readonly settings: JudgeSettings;
  /** Null: silence is not tried. */
  readonly silence: SilencePromise | null;
  /** How long the charger may take to answer. */
  readonly answerWithin: Millis;
  /** What it is left with. */
  readonly leave: Desired;
  readonly progress: (words: string) => void;
}

/** Longer than any step: a lease must not end within one. */
const LEASE = minutes(10);
/** A time-out is watched for so much longer, since chargers look at their watch every few seconds. */
const GRACE = seconds(15);
const RESTORING_TRIES = 5;
const RETRY = seconds(2);

/** Tries one charger, and leaves it as it was asked to whatever happens on the way. */
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
  const [cut, takenFor] = [bench.isStopped(), bench.preemptedBy()];
  return { steps, silence, cut, preemptedBy: takenFor, left: trial.leave, leftFailure: left };
}

async function oneLevel(level: Setpoint, trial: Trial, bench: Bench): Promise<Step> {
  const { charger, settings, answerWithin, progress } = trial;
  progress(`telling it ${formatLevel(level)}`);
  const toldAt = bench.now();
  const sent = await bench.order(level, LEASE);
  if (!sent.ok) {
    const effect = { kind: "unmeasured", why: "the broker did not take it" } as const;
    return {
      level,
      failure: sent.reason,
      confirmedAfter: null,
      heard: bench.heard(),
      refusal: null,
      drawn: null,
      effect,
    };
  }
  await bench.until(() => bench.taken() !== null, answerWithin);
  progress(`waiting up to ${settings.ramp / 1000} s for what it draws`);
  const isEmpty = (): boolean => bench.told()?.state === "unplugged";
  await bench.until(() => isEmpty() || hasArrived(level, bench.told(), charger, settings), settings.ramp);
  const [taken, told] = [bench.taken(), bench.told()];
  return {
    level,
    failure: null,
    confirmedAfter: taken?.accepted === true ? between(toldAt, taken.at) : null,
    heard: bench.heard(),
    refusal: taken?.accepted === false ? (taken.reason ?? "refused") : null,
    drawn: drawnBy(told, charger),
    effect: effectOf(level, told, charger, settings),
  };
}

async function fallSilent(
  level: Setpoint,
  promised: SilencePromise,
  { charger, settings, progress }: Trial,
  bench: Bench,
): Promise<Silence | null> {
  const sent = await bench.order(level, promised.after);
  if (!sent.ok) return null;
  bench.fallSilent();
  const began = bench.now();
  const look = (): SilenceEffect => afterSilence(level, bench.told(), charger, settings);
  const before = look();
  progress(
    `silent now, for ${(promised.after + GRACE) / 1000} s at most, after telling it ${formatLevel(level)}`,
  );
  const changed = await bench.until(() => look() !== before, millis(promised.after + GRACE));
  if (bench.isStopped()) return null;
  // It goes down or up in steps: what it has come to counts, not what it passed through.
  if (changed) await bench.rest(seconds(2));
  // Who paused before the silence began shows nothing by pausing.
  const seen = before === "holds" ? look() : "unmeasured";
  return { promised, level, seen, seenAfter: changed ? between(began, bench.now()) : null };
}

/** The broker may be away for a moment: the charger must not stay as the trial left it, unless control has it again. */
async function restore({ leave, progress }: Trial, bench: Bench): Promise<string | null> {
  if (bench.preemptedBy() === null) progress(`leaving it with: ${formatLevel(leave)}`);
  let failure = "";
  for (let tries = 0; tries < RESTORING_TRIES; tries += 1) {
    if (tries > 0) await bench.rest(RETRY);
    if (bench.preemptedBy() !== null) return null;
    const sent = await bench.order(leave, LEASE);
    if (sent.ok) return null;
    failure = sent.reason;
  }
  return failure;
}
