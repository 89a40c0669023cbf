import type { Instant } from "./units.ts";

/**
 * A binary heap of (moment, key), earliest first. Entries are never taken out before their time: one that has
 * become pointless costs its owner a look that finds nothing to do.
 */
export class DueQueue<Key> {
  // Two flat arrays, not objects: a million future boundaries cost 16 bytes each.
  readonly #at: Instant[] = [];
  readonly #keys: Key[] = [];

  get size(): number {
    return this.#at.length;
  }

  /** The earliest moment, if there is one. */
  next(): Instant | undefined {
    return this.#at[0];
  }

  push(at: Instant, key: Key): void {
    let hole = this.#at.length;
    this.#at.push(at);
    this.#keys.push(key);
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = this.#at[parent];
      if (above === undefined || above <= at) break;
      this.#move(parent, hole);
      hole = parent;
    }
    this.#set(hole, at, key);
  }

  /** Takes out every key whose moment has come, each once. */
  due(now: Instant): Set<Key> {
    const keys = new Set<Key>();
    for (let at = this.next(); at !== undefined && at <= now; at = this.next()) {
      const key = this.#keys[0];
      if (key !== undefined) keys.add(key);
      this.#removeFirst();
    }
    return keys;
  }

  #removeFirst(): void {
    const at = this.#at.pop();
    const key = this.#keys.pop();
    if (at === undefined || key === undefined || this.#at.length === 0) return;
    const size = this.#at.length;
    let hole = 0;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#moment(child + 1) < this.#moment(child)) child += 1;
      if (this.#moment(child) >= at) break;
      this.#move(child, hole);
      hole = child;
    }
    this.#set(hole, at, key);
  }

  #moment(index: number): number {
    return this.#at[index] ?? Infinity;
  }

  #move(from: number, to: number): void {
    const at = this.#at[from];
    const key = this.#keys[from];
    if (at !== undefined && key !== undefined) this.#set(to, at, key);
  }

  #set(index: number, at: Instant, key: Key): void {
    this.#at[index] = at;
    this.#keys[index] = key;
  }
}
