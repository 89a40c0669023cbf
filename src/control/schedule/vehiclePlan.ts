import { holdsAt, type Instant } from "../../domain/units.ts";
import { indexIn, insert, type Order, remove } from "../../platform/dueQueue.ts";
import type { RankSettings } from "../decide/rank.ts";
import type { Dispatch } from "./expand.ts";
import { type Holding, InForce } from "./inForce.ts";

const latestStartFirst: Order<Dispatch> = (a, b) => b.from - a.from;
const latestEndFirst: Order<Dispatch> = (a, b) => b.until - a.until;

const NONE: readonly Dispatch[] = [];

/** What the record is told once about a dispatch: that a look weighed it, or that its vehicle is at no charger. */
export type Mark = "weighed" | "placed";

/**
 * All dispatches of one vehicle: those ahead by their start, those that began by their end and by their rank. A
 * partner may leave hundreds in force, so nothing here walks through those that lose.
 */
export class VehiclePlan {
  /** The next to start is the last. */
  readonly #ahead: Dispatch[] = [];
  /** Those that began, the next to end last. What has ended stays until `dropEnded`. */
  readonly #begun: Dispatch[] = [];
  readonly #ranked: InForce;
  /** Those that began and may still want a mark. */
  readonly #unmarked: Record<Mark, Dispatch[]> = { weighed: [], placed: [] };
  #started: Dispatch[] = [];
  /** Start of the latest that began. */
  #latestFrom = -Infinity;

  constructor(settings: RankSettings) {
    this.#ranked = new InForce(settings);
  }

  get size(): number {
    return this.#ahead.length + this.#begun.length;
  }

  /** In no particular order. */
  all(): readonly Dispatch[] {
    return [...this.#ahead, ...this.#begun];
  }

  add(dispatch: Dispatch, now: Instant): void {
    if (dispatch.from > now) insert(this.#ahead, dispatch, latestStartFirst);
    else this.#begin(dispatch);
  }

  /** False: it is not here. */
  remove(dispatch: Dispatch): boolean {
    if (remove(this.#ahead, dispatch, latestStartFirst)) return true;
    this.#ranked.delete(dispatch);
    return remove(this.#begun, dispatch, latestEndFirst);
  }

  /** Those that hold now, the first to end last. */
  holding(now: Instant): readonly Dispatch[] {
    this.#startBy(now);
    return this.#begun.filter((dispatch) => holdsAt(dispatch, now));
  }

  /** The same by rank. What has ended since the last look is passed over. */
  ranked(now: Instant): Holding {
    this.#startBy(now);
    const { length } = this.#begun;
    let open = length;
    while (open > 0 && (this.#begun[open - 1] as Dispatch).until <= now) open -= 1;
    // Before the jump is noticed, a clock that was set back finds what has begun by the one from before.
    const isBack = now < this.#latestFrom;
    if (open === length && !isBack) return this.#ranked;
    const ranked = this.#ranked;
    return {
      count: isBack ? this.holding(now).length : open,
      *ranked(wattsPerAmpere) {
        for (const dispatch of ranked.ranked(wattsPerAmpere)) if (holdsAt(dispatch, now)) yield dispatch;
      },
    };
  }

  /** When the next of them starts or ends after a moment; Infinity: never. */
  next(at: Instant): number {
    let next = this.#begun.findLast(({ until }) => until > at)?.until ?? Infinity;
    for (let index = this.#ahead.length - 1; index >= 0; index -= 1) {
      const { from, until } = this.#ahead[index] as Dispatch;
      if (from > at) return Math.min(next, from);
      if (until > at) next = Math.min(next, until);
    }
    return next;
  }

  /** Those in force that `mark` has not yet said yes to. */
  mark(kind: Mark, now: Instant, mark: (dispatch: Dispatch) => boolean): void {
    this.#startBy(now);
    const unmarked = this.#unmarked[kind];
    if (unmarked.length === 0) return;
    const left = unmarked.filter(
      (dispatch) => this.#keeps(dispatch) && !(holdsAt(dispatch, now) && mark(dispatch)),
    );
    this.#unmarked[kind] = left;
  }

  /** All of them want this mark again. */
  unmark(kind: Mark): void {
    this.#unmarked[kind] = [...this.#begun];
  }

  /** Those that started since the last call. */
  takeStarted(now: Instant): readonly Dispatch[] {
    this.#startBy(now);
    if (this.#started.length === 0) return NONE;
    const started = this.#started;
    this.#started = [];
    return started;
  }

  dropEnded(now: Instant): readonly Dispatch[] {
    const ended: Dispatch[] = [];
    for (let last = this.#begun.at(-1); last !== undefined && last.until <= now; last = this.#begun.at(-1)) {
      this.#begun.pop();
      this.#ranked.delete(last);
      ended.push(last);
    }
    return ended;
  }

  #startBy(now: Instant): void {
    for (let next = this.#ahead.at(-1); next !== undefined && next.from <= now; next = this.#ahead.at(-1)) {
      this.#ahead.pop();
      this.#started.push(next);
      this.#begin(next);
    }
  }

  #begin(dispatch: Dispatch): void {
    insert(this.#begun, dispatch, latestEndFirst);
    this.#latestFrom = Math.max(this.#latestFrom, dispatch.from);
    this.#ranked.add(dispatch);
    for (const kind of ["weighed", "placed"] as const) {
      const unmarked = this.#unmarked[kind];
      unmarked.push(dispatch);
      // A vehicle that is always at a charger is never reported as being at none: what is over must not pile up.
      if (unmarked.length > 2 * this.#begun.length + 8)
        this.#unmarked[kind] = unmarked.filter((one) => this.#keeps(one));
    }
  }

  #keeps(dispatch: Dispatch): boolean {
    return indexIn(this.#begun, dispatch, latestEndFirst) !== null;
  }
}
