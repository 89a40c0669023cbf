/** Commits since the start, readings' included, how long the longest took (ms, the loop stands still meanwhile), and the size on disk. */
export interface StoreStats {
  readonly commits: number;
  readonly failures: number;
  readonly longestCommitMs: number;
  /** Why the last commit failed, and how long ago the first failure of this series was. Null: the last one succeeded. */
  readonly failing: { readonly reason: string; readonly forMs: number } | null;
  readonly bytes: number;
}

/** Counts commits and remembers since when they fail. */
export class CommitStats {
  readonly #monotonic: () => number;
  #failures = 0;
  #longestCommitMs = 0;
  #failing: { readonly reason: string; readonly since: number } | null = null;

  /** `monotonic` in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** `fault` is the reason of a failed commit, null for one that succeeded. */
  count(tookMs: number, fault: string | null): void {
    this.#longestCommitMs = Math.max(this.#longestCommitMs, tookMs);
    if (fault === null) {
      this.#failing = null;
      return;
    }
    this.#failures += 1;
    this.#failing = { reason: fault, since: this.#failing?.since ?? this.#monotonic() };
  }

  view(): Pick<StoreStats, "failures" | "longestCommitMs" | "failing"> {
    const failing = this.#failing && {
      reason: this.#failing.reason,
      forMs: Math.round(this.#monotonic() - this.#failing.since),
    };
    return { failures: this.#failures, longestCommitMs: this.#longestCommitMs, failing };
  }
}
