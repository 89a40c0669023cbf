import type { Change, FailedCommit, Committed } from "../../domain/changes.ts";
import { type ChargerId, type Instant, type Millis, later } from "../../domain/units.ts";
import type { ResumableTask } from "../../platform/cooperative.ts";
import type { Freeing, Reevaluation } from "../ports.ts";
import type { ControlState } from "../state.ts";
import { siteRise } from "./pace.ts";
import type { Step } from "./reconcile.ts";
import type { Verdict } from "./verdict.ts";

/** Chargers evaluated in one turn of the event loop, and committed in one transaction. */
export const SLICE = 500;
/** Commit time in ms above which the next slice grows: a slow disk gets fewer commits. */
const SLOW_COMMIT = 500;
const GROWTH = 2;
/** Commits that waited for the end of an outage were all slow. */
export const LARGEST_SLICE = 8 * SLICE;
/** Most evaluations whose commit is open. A database that is away for an hour leaves no more of them in memory. */
const MOST_OPEN = 100;

/**
 * Chargers that wait for their evaluation. A large event affects 20,000 of them.
 * They are evaluated in slices with a commit each, and the event loop runs in between.
 * An evaluation reads the state at its own time, so the order among chargers does not matter.
 */
export class EvaluationQueue {
  readonly #state: ControlState;
  /** Value: the command is to be sent again. */
  #waiting = new Map<ChargerId, boolean>();
  /** The waiting chargers are in the order of the ramp. */
  #isOrdered = true;
  #slice = SLICE;
  /** Evaluations whose commit is open. */
  #open = 0;
  /** An evaluation waits for the commit of another one, perhaps without chargers. */
  #isHeld = false;

  constructor(state: ControlState) {
    this.#state = state;
  }

  get isEmpty(): boolean {
    return !this.#isHeld && this.#waiting.size === 0;
  }

  /**
   * The chargers to evaluate now: all of these where they are few, or the first of all that wait. Null: too many commits are
   * open, so these wait for the end of one, each once.
   */
  take(reevaluations: readonly Reevaluation[]): readonly Reevaluation[] | null {
    if (this.#open >= MOST_OPEN || reevaluations.length > this.#slice) {
      this.#add(reevaluations);
      return this.next();
    }
    this.#open += 1;
    const merged = new Map<ChargerId, boolean>();
    for (const { charger, reassert } of reevaluations) {
      merged.set(charger, reassert || merged.get(charger) === true || this.#waiting.get(charger) === true);
      this.#waiting.delete(charger);
    }
    return reevaluationsOf(inRampOrder(this.#state, merged));
  }

  /** The next slice of waiting chargers. Null: as of `take`. */
  next(): readonly Reevaluation[] | null {
    this.#isHeld = this.#open >= MOST_OPEN;
    if (this.#isHeld) return null;
    this.#open += 1;
    if (!this.#isOrdered) this.#waiting = inRampOrder(this.#state, this.#waiting);
    this.#isOrdered = true;
    const slice = reevaluationsOf(this.#waiting.entries().take(this.#slice));
    for (const { charger } of slice) this.#waiting.delete(charger);
    return slice;
  }

  /** Ends an evaluation. `took`: time of its commit. Null: no caller waited for it. */
  committed(took: Millis | null): void {
    this.#open -= 1;
    if (took !== null)
      this.#slice = took > SLOW_COMMIT ? Math.min(this.#slice * GROWTH, LARGEST_SLICE) : SLICE;
  }

  #add(reevaluations: readonly Reevaluation[]): void {
    for (const { charger, reassert } of reevaluations)
      this.#waiting.set(charger, reassert || this.#waiting.get(charger) === true);
    this.#isOrdered = false;
  }
}

const reevaluationsOf = (entries: Iterable<readonly [ChargerId, boolean]>): readonly Reevaluation[] =>
  Array.from(entries, ([charger, reassert]) => ({ charger, reassert }));

/** A freeing of which some chargers still wait for their evaluation or its commit. */
interface OpenFreeing {
  readonly freeing: Freeing;
  readonly waiting: Set<ChargerId>;
  uncommitted: number;
  failed: FailedCommit | null;
}

/** The part of a freeing that belongs to one slice of evaluations. */
export interface FreeingPart {
  readonly chargers: readonly ChargerId[];
  readonly by: string;
  /** Called after its commit. */
  readonly settle: (committed: Committed) => void;
}

/** Freeings of many chargers run in slices. Each freeing is settled after the commit of its last slice. */
export class Freeings {
  #open: readonly OpenFreeing[] = [];

  add(freeing: Freeing): void {
    const waiting = new Set(freeing.chargers);
    this.#open = [...this.#open, { freeing, waiting, uncommitted: waiting.size, failed: null }];
  }

  /** The parts of all freeings that belong to these chargers. */
  take(chargers: readonly ChargerId[]): readonly FreeingPart[] {
    if (this.#open.length === 0) return NONE;
    const parts = this.#open.map((open) => partOf(open, chargers));
    this.#open = this.#open.filter(({ waiting }) => waiting.size > 0);
    return parts;
  }
}

const NONE: readonly FreeingPart[] = [];

function partOf(open: OpenFreeing, chargers: readonly ChargerId[]): FreeingPart {
  const part = chargers.filter((charger) => open.waiting.delete(charger));
  return {
    chargers: part,
    by: open.freeing.by,
    settle: (committed) => {
      open.uncommitted -= part.length;
      if (!committed.ok) open.failed ??= committed;
      const isDone = open.uncommitted === 0 && (part.length > 0 || open.freeing.chargers.length === 0);
      if (isDone) open.freeing.settle(open.failed ?? committed);
    },
  };
}

/**
 * The mark in the store that all that was due is evaluated. It is written with the last of several evaluations. After a
 * crash before it, the next start records the windows that are over as missed.
 */
export class EvaluatedMark {
  /** Something became due since the last mark. */
  isDue = true;
  /** A window began or ended since the last mark. */
  hasBoundaries = false;
  /** Further parts of a list follow. Its chargers are evaluated after the last one. */
  isListOpen = false;
  /** Rows of missed windows, to be committed with the mark. */
  #missed: Change[] = [];
  readonly #state: ControlState;
  readonly #queue: EvaluationQueue;
  /** The mark in the store. Null: none. */
  #stored: Instant | null;

  constructor(state: ControlState, queue: EvaluationQueue) {
    this.#state = state;
    this.#queue = queue;
    this.#stored = state.schedule.storedEvaluatedAt;
  }

  /** The mark to write with this evaluation. Empty: none. */
  take(now: Instant): readonly Change[] {
    const isBehind =
      !this.#queue.isEmpty || this.isListOpen || (this.#state.agenda.next() ?? Infinity) <= now;
    if (!(this.isDue || this.hasBoundaries) || isBehind || this.#state.barTo("start", null) !== null)
      return [];
    // A clock at 1970 takes no window back. Only windows that begin or end by this clock show that it is right.
    if (this.#stored !== null && now < this.#stored && !this.hasBoundaries) return [];
    this.isDue = false;
    this.hasBoundaries = false;
    this.#stored = now;
    return this.write(now);
  }

  /** Keeps rows until the mark. A crash before it loses them, and the next start finds the windows missed again. */
  add(missed: readonly Change[]): void {
    for (const change of missed) this.#missed.push(change);
  }

  /** The mark, whether or not something is due. */
  write(at: Instant): readonly Change[] {
    const missed = this.#missed;
    this.#missed = [];
    return [...missed, { kind: "evaluated", at }];
  }
}

/** A part of control, run in order with the others. A task: it grows with the site, and may take several turns. */
export type Stage = () => readonly Reevaluation[] | ResumableTask<readonly Reevaluation[]>;

/** Runs stages in order. Returns all chargers to evaluate. */
export function* inOrder(stages: readonly Stage[]): ResumableTask<readonly Reevaluation[]> {
  const affected: Reevaluation[] = [];
  for (const stage of stages) {
    const result = stage();
    for (const reevaluation of "next" in result ? yield* result : result) affected.push(reevaluation);
  }
  return affected;
}

/** An evaluation whose changes are being committed. */
export interface Pending {
  readonly number: number;
  readonly evaluated: readonly Reevaluation[];
  readonly freed: readonly FreeingPart[];
  /** Chargers with a command to send after the commit. */
  readonly send: readonly ChargerId[];
  /** Request of the commit, monotonic clock. */
  readonly since: Millis;
  /** The commit is due now: a command, an answer or further chargers wait for it, or no publish would be delayed by it. */
  readonly isAwaited: boolean;
  readonly committed: Promise<Committed>;
}

/** Chargers that were queued at one broker. */
export interface Waiting {
  readonly broker: string;
  readonly count: number;
}

/*
 * Deferrals: an increase that has to wait for the writes of its charger or for its turn in the ramp of the site.
 * `pace.ts` has the rules.
 */

/**
 * Records a deferral of the charger and its place in the ramp. Call it before the decision replaces the last
 * command. Returns the rows to store.
 */
export function recordDeferral(
  state: ControlState,
  verdict: Verdict,
  step: Step,
  now: Instant,
): readonly Change[] {
  const { id } = verdict.charger;
  const deferral = step.kind === "nothing" ? null : step.deferral;
  if (deferral === null) state.endDeferral(id);
  else state.defer(id, deferral);
  const { ramp } = state;
  if (ramp === null) return NO_CHANGES;
  const before = state.commands.get(id)?.command.desired;
  const rise = before === undefined ? 0 : siteRise(before, verdict.desired, verdict, ramp.unit);
  if (deferral?.by === "release ramp") {
    ramp.wait(id, rise);
    return noteWait(state, id, now);
  }
  if (step.kind === "decide" && before !== undefined)
    ramp.passed(siteRise(before, step.decision.desired, verdict, ramp.unit), now);
  leaveRampOrder(state, id, now);
  return step.kind === "decide" ? NO_CHANGES : noteWait(state, id, null);
}

const NO_CHANGES: readonly Change[] = [];

/** A level that waits is decided anew, as its window ends. A pause is not: its wait is stored. Null: it does not wait. */
function noteWait({ commands }: ControlState, id: ChargerId, since: Instant | null): readonly Change[] {
  const record = commands.get(id);
  if (record?.command.desired.kind !== "pause") return NO_CHANGES;
  const { waitsSince, ...rest } = record;
  if ((waitsSince === undefined) === (since === null)) return NO_CHANGES;
  const noted = since === null ? rest : { ...rest, waitsSince: since };
  commands.record(noted);
  return [{ kind: "command", record: noted }];
}

/** This charger has nothing to wait for: the next one in the ramp may go on. */
export function endDeferral(state: ControlState, id: ChargerId, now: Instant): void {
  state.endDeferral(id);
  leaveRampOrder(state, id, now);
}

function leaveRampOrder(state: ControlState, id: ChargerId, now: Instant): void {
  const { ramp } = state;
  const next = ramp?.leave(id) ?? null;
  if (ramp !== null && next !== null) state.wake(next, later(ramp.nextSlot(next, now), now));
}

/** Chargers with a deferral first, the longest waiting at the head. After a restart this restores their order. */
function inRampOrder(
  { ramp, commands }: ControlState,
  waiting: Map<ChargerId, boolean>,
): Map<ChargerId, boolean> {
  if (ramp === null) return waiting;
  const held: (readonly [since: number, charger: ChargerId])[] = [];
  for (const id of waiting.keys()) {
    const record = commands.get(id);
    const since = record?.command.cause === "held" ? record.command.decidedAt : record?.waitsSince;
    if (since !== undefined) held.push([since, id]);
  }
  if (held.length === 0) return waiting;
  const longestFirst = held.toSorted(([a], [b]) => a - b).map(([, id]) => id);
  return new Map([...longestFirst.map((id) => [id, waiting.get(id) === true] as const), ...waiting]);
}
