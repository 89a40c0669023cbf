import { hash } from "node:crypto";

import type { Rejected } from "./delivery.ts";

/** Cap on remembered rejections. Larger than the longest list that is accepted, so one list never evicts itself. */
const MOST = 100_000;

/** The rejected input that was recorded already: each is recorded once. */
export class Rejections {
  readonly #prints = new Set<string>();

  /** Whether this was not rejected before. */
  isNew({ id, path, reason, raw }: Rejected): boolean {
    const print = hash("sha256", JSON.stringify([id, path, reason, raw]), "base64");
    if (this.#prints.has(print)) return false;
    if (this.#prints.size >= MOST) this.#prints.clear();
    this.#prints.add(print);
    return true;
  }

  /** After a failed commit it is not known which rows are stored: twice is better than never. */
  clear(): void {
    this.#prints.clear();
  }
}
