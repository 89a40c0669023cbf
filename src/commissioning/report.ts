import type { Json } from "../domain/audit.ts";
import { formatLevel } from "../domain/setpoint.ts";
import type { Millis } from "../domain/units.ts";
import type { Effect } from "./judgement.ts";
import type { Result, Silence, Step } from "./trial.ts";

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
