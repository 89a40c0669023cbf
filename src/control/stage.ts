import type { Change, Committed } from "../domain/changes.ts";
import type { ChargerId, Instant } from "../domain/units.ts";
import type { ResumableTask } from "../platform/cooperative.ts";
import type { ControlState } from "./state.ts";

/** A request to evaluate a charger. */
export interface Reevaluation {
  readonly charger: ChargerId;
  /** The charger came back: its command is sent, changed or not. */
  readonly reassert: boolean;
}

/** Requests to evaluate these chargers. */
export const reevaluationsOf = (chargers: Iterable<ChargerId>, reassert = false): readonly Reevaluation[] =>
  Array.from(chargers, (charger) => ({ charger, reassert }));

/** A part of control, run in order with the others. A task: it grows with the site, and may take several turns. */
export type Stage = () => readonly Reevaluation[] | ResumableTask<readonly Reevaluation[]>;

/** Runs stages in order. Returns all chargers to evaluate. */
export function* inOrder(stages: readonly Stage[]): ResumableTask<readonly Reevaluation[]> {
  const all: Reevaluation[] = [];
  for (const stage of stages) {
    const result = stage();
    for (const reevaluation of "next" in result ? yield* result : result) all.push(reevaluation);
  }
  return all;
}

/** Changes to store, and the chargers to evaluate for them. */
export interface StageResult {
  readonly changes: readonly Change[];
  readonly reevaluations: readonly Reevaluation[];
}

export const NO_CHANGES: StageResult = { changes: [], reevaluations: [] };

/** A change that a person asks for, or the program in a person's place. */
export type RequestedChange = (state: ControlState, now: Instant) => StageResult;

/** A requested change on its way to its stage. Settled after its commit. */
export interface ChangeRequest {
  readonly apply: RequestedChange;
  readonly settle: (committed: Committed) => void;
}
