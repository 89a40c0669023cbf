import type { Change } from "../../domain/changes.ts";
import type { ChargerId, Instant, Millis } from "../../domain/units.ts";
import type { Reevaluation } from "../stage.ts";
import type { ControlState } from "../state.ts";

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
    return requestsFor(inRampOrder(this.#state, merged));
  }

  /** The next slice of waiting chargers. Null: as of `take`. */
  next(): readonly Reevaluation[] | null {
    this.#isHeld = this.#open >= MOST_OPEN;
    if (this.#isHeld) return null;
    this.#open += 1;
    if (!this.#isOrdered) this.#waiting = inRampOrder(this.#state, this.#waiting);
    this.#isOrdered = true;
    const slice = requestsFor(this.#waiting.entries().take(this.#slice));
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

const requestsFor = (entries: Iterable<readonly [ChargerId, boolean]>): readonly Reevaluation[] =>
  Array.from(entries, ([charger, reassert]) => ({ charger, reassert }));

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
