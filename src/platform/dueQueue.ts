import { type Instant, instant } from "../domain/units.ts";

/**
 * A binary heap of (moment, key), earliest first. Entries are never taken out before their time: one that has
 * become pointless costs its owner a look that finds nothing to do.
 */
export class DueQueue<Key extends string> {
  // Two flat arrays, not objects: a million future boundaries cost 16 bytes each.
  readonly #at: Instant[] = [];
  readonly #keys: (Key | undefined)[] = [];

  get size(): number {
    return this.#at.length;
  }

  /** The earliest moment, if there is one. */
  next(): Instant | undefined {
    return this.#at[0];
  }

  push(at: Instant, key: Key): void {
    let hole = this.#at.length;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (this.#moment(parent) <= at) break;
      this.#set(hole, this.#moment(parent), this.#keys[parent]);
      hole = parent;
    }
    this.#set(hole, at, key);
  }

  /** Takes out every key whose moment has come, each once. */
  due(now: Instant): Set<Key> {
    const keys = new Set<Key>();
    for (let key = this.#take(now); key !== undefined; key = this.#take(now)) keys.add(key);
    return keys;
  }

  /** Forgets all of it. */
  clear(): void {
    this.#at.length = 0;
    this.#keys.length = 0;
  }

  #take(now: Instant): Key | undefined {
    if (this.#moment(0) > now) return undefined;
    const key = this.#keys[0];
    this.#removeFirst();
    return key;
  }

  #removeFirst(): void {
    const last = this.#at.length - 1;
    const [at, key] = [this.#moment(last), this.#keys[last]];
    this.#at.length = last;
    this.#keys.length = last;
    if (last === 0) return;
    let hole = 0;
    for (;;) {
      const left = 2 * hole + 1;
      const child = this.#moment(left + 1) < this.#moment(left) ? left + 1 : left;
      if (this.#moment(child) >= at) break;
      this.#set(hole, this.#moment(child), this.#keys[child]);
      hole = child;
    }
    this.#set(hole, at, key);
  }

  /** Beyond the end nothing is ever due. */
  #moment(index: number): Instant {
    return this.#at[index] ?? instant(Infinity);
  }

  #set(index: number, at: Instant, key: Key | undefined): void {
    this.#at[index] = at;
    this.#keys[index] = key;
  }
}

/** The first index below `length` at which it holds, given that it holds at every later one too; `length`: nowhere. */
export function firstIndex(length: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The same over the entries of a list. */
export const firstWhere = <Entry>(list: readonly Entry[], holds: (entry: Entry) => boolean): number =>
  firstIndex(list.length, (index) => {
    const entry = list[index];
    return entry !== undefined && holds(entry);
  });

/** Negative: `a` stands before `b`. Zero: they may stand in either order. */
export type Order<T> = (a: T, b: T) => number;

/** Puts a value into its place in a list that is in order: log n comparisons and one move of memory. */
export function insert<T>(list: T[], value: T, order: Order<T>): void {
  list.splice(placeOf(list, value, order), 0, value);
}

/** Takes this very value out of a list that is in order. False: it was not in it. */
export function remove<T>(list: T[], value: T, order: Order<T>): boolean {
  const index = indexIn(list, value, order);
  if (index === null) return false;
  list.splice(index, 1);
  return true;
}

/** Where this very value stands in a list that is in order; null: it is not in it. */
export function indexIn<T>(list: readonly T[], value: T, order: Order<T>): number | null {
  for (let index = placeOf(list, value, order); index < list.length; index += 1) {
    const found = list[index] as T;
    if (found === value) return index;
    if (order(value, found) < 0) return null;
  }
  return null;
}

/** The index of the first value that does not stand before this one. */
const placeOf = <T>(list: readonly T[], value: T, order: Order<T>): number =>
  firstWhere(list, (other) => order(other, value) >= 0);
