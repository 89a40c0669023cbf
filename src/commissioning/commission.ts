import type { Profile } from "../chargers/profile/schema.ts";
import { type AcquiredCharger, endCommissioning } from "../control/decide/commissioningAccess.ts";
import type { JudgeSettings } from "../control/observe/compliance.ts";
import type { ControlState } from "../control/state.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Stored } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import { type Desired, formatLevel } from "../domain/setpoint.ts";
import { type Instant, type Millis, seconds } from "../domain/units.ts";
import type { Effect } from "./judgement.ts";
import {
  type Bench,
  describePriorState,
  priorState,
  type SilencePromise,
  tryCharger,
  type Result,
  type Silence,
  type Step,
} from "./trial.ts";

/** Everything that commissioning needs, in the daemon or in the verb without one. */
export interface Commissioning {
  readonly charger: Charger;
  readonly profile: Profile;
  readonly silence: boolean;
  /** The person who asked for it, for the record. Null: the command line. */
  readonly asked: AskedBy | null;
  readonly acquired: AcquiredCharger;
  readonly state: ControlState;
  readonly settings: JudgeSettings;
  /** The level that the charger shows, set by anyone. Null: it shows none. */
  readonly shows: () => Desired | null;
  readonly write: (changes: readonly Change[]) => void;
  readonly committed: () => Promise<Stored>;
  readonly progress: (message: string) => void;
}

/** A person with a reason. */
export interface AskedBy {
  readonly by: string;
  readonly reason: string;
}

/** Output and result. */
export interface Commissioned {
  readonly good: boolean;
  /** Result in one line, and of each level. Null: nothing was tried. */
  readonly tried: {
    readonly sentence: string;
    readonly levels: ReturnType<typeof levelResults>;
  } | null;
  /** Result for people. Null: nothing was tried. */
  readonly words: string | null;
  /** A failure outside of the trial. Null: none. */
  readonly complaint: string | null;
}

/** Nothing was tried, or nothing is known of a trial. */
export const untried = (complaint: string): Commissioned => ({
  good: false,
  tried: null,
  words: null,
  complaint,
});

/** Time for the first message of a charger: it may have to connect to the broker first. */
const FIRST_MESSAGE = seconds(10);
/** Lease of a native charger during the trial of its silence. The real one is too long to wait for. */
const SHORT_LEASE = seconds(30);
/** Silence for chargers without a time-out. Longer than every known time-out. */
const LONG_SILENCE = seconds(90);
/** Time for the answer, where the profile has no confirmation. */
const ANSWER_WITHIN = seconds(10);

/** Reason why a charger should not be tried now. Null: none. */
export function reasonNotTo(state: ControlState, charger: Charger, now: Instant): string | null {
  const { winner, until } = state.verdictOn(charger, now);
  if (winner !== null)
    return `${winner.event.id} holds on ${charger.id} until ${until === null ? "it is withdrawn" : state.wallClock(until)}`;
  return state.barTo("plan", null) === "observing"
    ? "control.mode is observe: no charger gets a command"
    : null;
}

/** Tries a locked charger, restores its prior state and records the result. */
export async function commissioned(
  {
    charger,
    profile,
    silence,
    asked,
    acquired,
    state,
    settings,
    shows,
    write,
    committed,
    progress,
  }: Commissioning,
  bench: Bench,
): Promise<Commissioned> {
  const note = async (message: string, facts: Json, changes: readonly Change[]): Promise<string | null> => {
    write([auditRow("operator", bench.now(), message, { charger: charger.id, facts }), ...changes]);
    const written = await committed();
    return written.ok ? null : written.reason;
  };
  const nothingTried = (why: string): Commissioned => {
    write(endCommissioning(state, charger.id, true, bench.now()));
    return untried(`nothing was tried: ${why}`);
  };
  // Before the wait: later decisions of control must be stored after it.
  write(acquired.pendingRelease);
  const locked = await committed();
  if (!locked.ok) return nothingTried(locked.reason);
  await bench.until(() => bench.telemetry() !== null, FIRST_MESSAGE);
  if (bench.isStopped()) return nothingTried(bench.preemptedBy() ?? "stopped");
  const before = priorState(acquired.limit, shows(), charger);
  const unwritten = await note(
    `commissioning of ${charger.id} (${profile.profile}) begins${asked === null ? "" : `, asked by ${asked.by}: ${asked.reason}`}`,
    { before: formatLevel(before.desired), knownBy: before.source, ...asked },
    [],
  );
  if (unwritten !== null) return nothingTried(unwritten);
  const result = await tryCharger(
    {
      charger,
      settings,
      silence: silence ? promiseOf(profile) : null,
      answerWithin: answerTime(profile),
      leave: before.desired,
      progress,
    },
    bench,
  );
  const isLeft = result.leftFailure === null;
  const lost = await note(
    `commissioned ${charger.id}: ${summary(result)}`,
    resultFacts(result),
    endCommissioning(state, charger.id, isLeft, bench.now()),
  );
  return {
    good: isGood(result) && lost === null,
    tried: { sentence: summary(result), levels: levelResults(result) },
    words: `${charger.id} (${profile.profile}), ${describePriorState(before)}\n${formatResult(result)}`,
    complaint: lost === null ? null : `the result could not be written down: ${lost}`,
  };
}

/** The behaviour in silence that the profile promises. */
export function promiseOf({ nativePayloads, deviceTimeout }: Profile): SilencePromise {
  if (nativePayloads) return { after: SHORT_LEASE, effect: "own limits" };
  if (deviceTimeout === undefined) return { after: LONG_SILENCE, effect: "holds" };
  return { after: deviceTimeout.after, effect: deviceTimeout.effect === "pause" ? "pauses" : "own limits" };
}

/** A profile with a confirmation reports its absence itself. */
const answerTime = ({ confirmedBy }: Profile): Millis =>
  confirmedBy === undefined ? ANSWER_WITHIN : seconds(confirmedBy.within / 1000 + 1);

const HEADINGS = ["asked", "confirmed", "measured", "followed"];

/** The table and the sentences below it, for people. */
export function formatResult(result: Result): string {
  const rows = [HEADINGS, ...result.steps.map(rowOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [...lines, ...sentences(result)].join("\n");
}

/** True: every visible result was right, at least one was visible, and the prior state was restored. */
export const isGood = ({ steps, silence, cut, leftFailure }: Result): boolean =>
  !cut &&
  leftFailure === null &&
  steps.length > 0 &&
  steps.every(
    ({ failure, refusal, effect }) => failure === null && refusal === null && effect.kind !== "notFollowed",
  ) &&
  steps.some(({ confirmedAfter, effect }) => confirmedAfter !== null || effect.kind === "followed") &&
  (silence === null || silence.seen === "unmeasured" || silence.seen === silence.promised.effect);

/** Summary in one line, for the record. */
export function summary(result: Result): string {
  const steps = result.steps.map((step) => `${formatLevel(step.level)} ${formatEffect(step.effect)}`);
  const tried = steps.length === 0 ? "nothing was tried" : steps.join(", ");
  return [tried, ...sentences(result)].join("; ");
}

/** The result as JSON, for the record. */
export const resultFacts = ({ steps, silence, cut, preemptedBy, left, leftFailure }: Result): Json => ({
  steps: steps.map(({ level, failure, confirmedAfter, hasReported, refusal, drawn, effect }) => ({
    asked: formatLevel(level),
    failure,
    confirmedAfterMs: confirmedAfter,
    heard: hasReported,
    refusal,
    drawnA: drawn,
    effect: effect.kind,
  })),
  silence:
    silence === null
      ? null
      : {
          promised: silence.promised.effect,
          afterMs: silence.promised.after,
          seen: silence.seen,
          seenAfterMs: silence.seenAfter,
        },
  cut,
  takenFor: preemptedBy,
  left: preemptedBy === null ? formatLevel(left) : null,
  leftFailure,
});

/** Result of each level for a person. `trouble`: not sent, refused, or why it cannot be measured. Null: none. */
const levelResults = ({ steps }: Result): readonly Readonly<Record<string, Json>>[] =>
  steps.map(({ level, failure, confirmedAfter, refusal, drawn, effect }) => ({
    asked: formatLevel(level),
    drawnA: drawn,
    effect: effect.kind,
    confirmedAfterMs: confirmedAfter,
    trouble: failure ?? refusal ?? (effect.kind === "unmeasured" ? effect.why : null),
  }));

function rowOf(step: Step): readonly string[] {
  const { level, drawn, effect } = step;
  return [
    formatLevel(level),
    formatConfirmation(step),
    drawn === null ? "-" : `${drawn.toFixed(1)} A`,
    formatEffect(effect),
  ];
}

function formatConfirmation({ failure, refusal, confirmedAfter, hasReported }: Step): string {
  if (failure !== null) return `not sent: ${failure}`;
  if (refusal !== null) return `refused: ${refusal}`;
  if (confirmedAfter !== null) return `after ${inSeconds(confirmedAfter)}`;
  return hasReported ? "no answer" : "no message";
}

function formatEffect(effect: Effect): string {
  switch (effect.kind) {
    case "followed":
      return "yes";
    case "notFollowed":
      return "NO";
    case "unmeasured":
      return `cannot be measured: ${effect.why}`;
  }
}

function sentences({ steps, silence, cut, preemptedBy, left, leftFailure }: Result): readonly string[] {
  const reached = steps.filter(({ failure }) => failure === null);
  const tried = [
    ...(reached.length > 0 && reached.every(({ hasReported }) => !hasReported) ? [NO_MESSAGE] : []),
    ...(silence === null ? [] : [formatSilence(silence)]),
  ];
  if (preemptedBy !== null) return [...tried, `cut short: ${preemptedBy}, so control has it again`];
  return [
    ...tried,
    ...(cut ? ["cut short"] : []),
    leftFailure === null
      ? `left with: ${formatLevel(left)}`
      : `NOT left with ${formatLevel(left)}: ${leftFailure}; setpointd release, or the charger itself, frees it`,
  ];
}

const NO_MESSAGE =
  "it never sent a message, which is not a refusal: compare its topics with setpointd profile show, and the broker's access list";

function formatSilence({ promised, level, seen, seenAfter }: Silence): string {
  const after = `after ${inSeconds(promised.after)} of silence`;
  const expected = `${promised.effect} ${after}`;
  if (seen === "unmeasured") return `silence: cannot be measured; it should be: ${expected}`;
  const when = seenAfter === null ? `at ${formatLevel(level)} to the end` : `after ${inSeconds(seenAfter)}`;
  const verdict = seen === promised.effect ? "as expected" : `NOT as expected: ${expected}`;
  return `silence: ${seen} ${when}, ${verdict}`;
}

const inSeconds = (span: Millis): string => `${(span / 1000).toFixed(span < 10_000 ? 1 : 0)} s`;
