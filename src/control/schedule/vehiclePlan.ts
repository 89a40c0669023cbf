import { isOpenAt, type Instant } from "../../domain/units.ts";
import { inserted, remove, type Comparison } from "../../platform/collections.ts";
import type { ControlSettings } from "../ports.ts";
import type { Dispatch } from "./expand.ts";

const latestStartFirst: Comparison<Dispatch> = (a, b) => b.from - a.from || byEvent(a, b);
const latestEndFirst: Comparison<Dispatch> = (a, b) => b.until - a.until || byEvent(a, b);
/** Hundreds of events may begin or end together. Each is found without a walk through the others. */
const byEvent: Comparison<Dispatch> = ({ event: { id: a } }, { event: { id: b } }) =>
  a === b ? 0 : a < b ? 1 : -1;

const NONE: readonly Dispatch[] = [];

/** Facts recorded once about a dispatch: it was evaluated, or its vehicle was at no charger. */
export type Mark = "evaluated" | "unplugged";

const BIT: Readonly<Record<Mark, number>> = { evaluated: 1, unplugged: 2 };

export const hasMark = ({ marks }: Dispatch, mark: Mark): boolean => (marks & BIT[mark]) !== 0;

export function setMark(dispatch: Dispatch, mark: Mark): void {
  dispatch.marks |= BIT[mark];
}

/** Copies the marks of one vehicle, or of one event that was restored after a failed commit. */
export function carryMarks(
  before: readonly Dispatch[],
  after: readonly Dispatch[],
  isCovered: (dispatch: Dispatch) => boolean,
): void {
  const counterparts = new Map(before.map((dispatch) => [windowKey(dispatch), dispatch]));
  for (const dispatch of after) {
    // A start has millions of windows and none before them: no keys.
    const counterpart = counterparts.size === 0 ? undefined : counterparts.get(windowKey(dispatch));
    if (counterpart === undefined ? isCovered(dispatch) : hasMark(counterpart, "evaluated"))
      setMark(dispatch, "evaluated");
    if (counterpart !== undefined && hasMark(counterpart, "unplugged")) setMark(dispatch, "unplugged");
  }
}

/** Key of a window of an event for a vehicle. No end: an edit of the end alone continues the window, as in `Revised`. */
const windowKey = ({ event, vehicle, from }: Dispatch): string => `${from} ${vehicle} ${event.id}`;

/**
 * All dispatches of one vehicle: future ones by start, begun ones by end and by rank.
 * A partner may leave hundreds in force. Only a new one, or a question for all of them, costs a walk through the rest.
 */
export class VehiclePlan {
  /** Sorted: the next to start is the last element. */
  #ahead: Dispatch[] = [];
  /** Begun dispatches. The next to end is the last element. Ended ones stay until `dropEnded`. */
  #begun: Dispatch[] = [];
  readonly #ranked: RankedInForce;
  /** False: a begun dispatch may lack the mark. */
  readonly #allHave: Record<Mark, boolean> = { evaluated: true, unplugged: true };
  #started: Dispatch[] = [];
  /** Latest start of a begun dispatch. */
  #latestFrom = -Infinity;

  constructor(settings: RankSettings) {
    this.#ranked = new RankedInForce(settings);
  }

  get size(): number {
    return this.#ahead.length + this.#begun.length;
  }

  /** In no particular order. */
  all(): readonly Dispatch[] {
    return [...this.#ahead, ...this.#begun];
  }

  add(dispatch: Dispatch, now: Instant): void {
    if (dispatch.from > now) this.#ahead = inserted(this.#ahead, dispatch, latestStartFirst);
    else this.#begin(dispatch);
  }

  /** False: the plan does not hold this dispatch. */
  remove(dispatch: Dispatch): boolean {
    if (remove(this.#ahead, dispatch, latestStartFirst)) return true;
    this.#ranked.delete(dispatch);
    return remove(this.#begun, dispatch, latestEndFirst);
  }

  /** Dispatches in force. The first to end is the last element. */
  allInForce(now: Instant): readonly Dispatch[] {
    this.#startBy(now);
    return this.#begun.filter((dispatch) => isOpenAt(dispatch, now));
  }

  /** Dispatches in force by rank. Skips those that ended since the last step. */
  ranked(now: Instant): InForce {
    this.#startBy(now);
    const { length } = this.#begun;
    let open = length;
    while (open > 0 && (this.#begun[open - 1] as Dispatch).until <= now) open -= 1;
    // A clock that was set back, before the jump is noticed: begun dispatches may lie in the future.
    const isBack = now < this.#latestFrom;
    if (open === length && !isBack) return this.#ranked;
    const ranked = this.#ranked;
    return {
      count: isBack ? this.allInForce(now).length : open,
      *ranked(wattsPerAmpere) {
        for (const dispatch of ranked.ranked(wattsPerAmpere)) if (isOpenAt(dispatch, now)) yield dispatch;
      },
    };
  }

  /** The next start or end after `at`. Infinity: none. */
  next(at: Instant): number {
    let next = this.#begun.findLast(({ until }) => until > at)?.until ?? Infinity;
    for (let index = this.#ahead.length - 1; index >= 0; index -= 1) {
      const { from, until } = this.#ahead[index] as Dispatch;
      if (from > at) return Math.min(next, from);
      if (until > at) next = Math.min(next, until);
    }
    return next;
  }

  /** Offers the dispatches in force without a mark to `isTrue`, and marks those for which it is. */
  mark(kind: Mark, now: Instant, isTrue: (dispatch: Dispatch) => boolean): void {
    this.#startBy(now);
    if (this.#allHave[kind]) return;
    this.#allHave[kind] = true;
    for (const dispatch of this.#begun) {
      if (hasMark(dispatch, kind)) continue;
      if (isOpenAt(dispatch, now) && isTrue(dispatch)) setMark(dispatch, kind);
      else this.#allHave[kind] = false;
    }
  }

  /** Takes this mark from all dispatches. */
  unmark(kind: Mark): void {
    for (const dispatch of this.all()) dispatch.marks &= ~BIT[kind];
    this.#allHave[kind] = false;
  }

  /** Dispatches that started since the last call. */
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
    this.#begun = inserted(this.#begun, dispatch, latestEndFirst);
    this.#latestFrom = Math.max(this.#latestFrom, dispatch.from);
    this.#ranked.add(dispatch);
    this.#allHave.evaluated = false;
    this.#allHave.unplugged = false;
  }
}

/** Dispatches in force for one vehicle. The cost of reading the best few does not grow with the rest. */
export interface InForce {
  readonly count: number;
  /** Best first. */
  readonly ranked: (wattsPerAmpere: number) => Iterable<Dispatch>;
}

/**
 * Dispatches of one vehicle, best first. Current and power have separate lists.
 * Their order depends on the charger and its measurements. The lists are merged only as far as they are read.
 */
export class RankedInForce implements InForce {
  readonly #settings: RankSettings;
  #current: Dispatch[] = [];
  #power: Dispatch[] = [];

  constructor(settings: RankSettings) {
    this.#settings = settings;
  }

  get count(): number {
    return this.#current.length + this.#power.length;
  }

  add(dispatch: Dispatch): void {
    const order = orderOf(this.#settings, 1);
    if (dispatch.setpoint.kind === "current") this.#current = inserted(this.#current, dispatch, order);
    else this.#power = inserted(this.#power, dispatch, order);
  }

  delete(dispatch: Dispatch): boolean {
    return remove(this.#listOf(dispatch), dispatch, orderOf(this.#settings, 1));
  }

  *ranked(wattsPerAmpere: number): Generator<Dispatch> {
    const order = orderOf(this.#settings, wattsPerAmpere);
    let [currents, powers] = [0, 0];
    for (;;) {
      const [current, power] = [this.#current[currents], this.#power[powers]];
      const isCurrent = current !== undefined && (power === undefined || order(current, power) < 0);
      const best = isCurrent ? current : power;
      if (best === undefined) return;
      if (isCurrent) currents += 1;
      else powers += 1;
      yield best;
    }
  }

  #listOf({ setpoint }: Dispatch): Dispatch[] {
    return setpoint.kind === "current" ? this.#current : this.#power;
  }
}

export const NOTHING_IN_FORCE: InForce = { count: 0, ranked: () => [] };

export type RankSettings = Pick<ControlSettings, "priority" | "priorityZero" | "ties">;

/** The better one first. */
export const orderOf =
  (settings: RankSettings, wattsPerAmpere: number): Comparison<Dispatch> =>
  (a, b) =>
    rankOf(a, settings) - rankOf(b, settings) || tie(a, b, settings, wattsPerAmpere);

/** Lower is better; absent loses to any, and 0 either wins over any or counts as absent. */
export function rankOf(
  { event: { priority } }: Pick<Dispatch, "event">,
  { priority: order, priorityZero }: RankSettings,
): number {
  if (priority === null) return Number.MAX_VALUE;
  if (priority === 0) return priorityZero === "highest" ? -Number.MAX_VALUE : Number.MAX_VALUE;
  return order === "lower" ? priority : -priority;
}

function tie(a: Dispatch, b: Dispatch, { ties }: RankSettings, wattsPerAmpere: number): number {
  const restrictive =
    ties === "mostRestrictive" ? inWatts(a, wattsPerAmpere) - inWatts(b, wattsPerAmpere) : 0;
  return (
    restrictive ||
    b.event.revision - a.event.revision ||
    b.event.created - a.event.created ||
    (a.event.id === b.event.id ? 0 : a.event.id < b.event.id ? 1 : -1)
  );
}

const inWatts = ({ setpoint }: Dispatch, wattsPerAmpere: number): number =>
  setpoint.kind === "power" ? setpoint.watts : setpoint.amperes * wattsPerAmpere;
