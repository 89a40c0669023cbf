import { type Instant, instant } from "./units.ts";

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
