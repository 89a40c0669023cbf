import { sayLine } from "./outcome.ts";

/** A line for each thing that is tried, as soon as it is known. */
export class LiveLines {
  #failures = 0;

  get failures(): number {
    return this.#failures;
  }

  ok(item: string, words: string): void {
    sayLine(`ok      ${item}: ${words}`);
  }

  /** `expected`: what would be right. */
  failed(item: string, found: string, expected: string): void {
    this.#failures += 1;
    sayLine(`FAILED  ${item}: ${found}`);
    sayLine(`        ${expected}`);
  }

  untried(item: string, why: string): void {
    sayLine(`-       ${item}: ${why}`);
  }

  /** What is waited for meanwhile. */
  waiting(words: string): void {
    sayLine(`...     ${words}`);
  }
}
