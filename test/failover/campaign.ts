import { FailoverDepot, type FaultKind, FAULTS, type Outcome } from "./depot.ts";

/** A generator of numbers in [0, 1) that a seed repeats (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Plan {
  /** Failovers of all depots together. */
  readonly count: number;
  readonly seed: number;
  readonly depots: number;
  /** Absent: all. */
  readonly faults?: readonly FaultKind[];
  /** No failover begins after it, ms of `performance.now`. */
  readonly until: number;
  readonly onRound?: (done: number) => void;
}

/** Faults in turn, so that a short run has each. */
export async function campaign({
  count,
  seed,
  depots,
  faults = FAULTS,
  until,
  onRound,
}: Plan): Promise<Outcome> {
  let begun = 0;
  let done = 0;
  const next = (): FaultKind | null =>
    begun < count && performance.now() < until ? (faults[begun++ % faults.length] ?? null) : null;
  const outcomes = await Promise.all(
    Array.from({ length: depots }, async (_, place): Promise<Outcome> => {
      await using depot = await FailoverDepot.open(seeded(seed + place));
      for (let kind = next(); kind !== null; kind = next()) {
        await depot.fail(kind);
        onRound?.((done += 1));
      }
      return await depot.end();
    }),
  );
  const sum = (of: (outcome: Outcome) => number): number =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  return {
    rounds: outcomes.flatMap(({ rounds }) => rounds),
    violations: outcomes.flatMap(({ violations }) => violations),
    explained: outcomes.flatMap(({ explained }) => explained),
    stalls: outcomes[0]?.stalls ?? [],
    deliveries: sum((outcome) => outcome.deliveries),
    commands: sum((outcome) => outcome.commands),
    refused: sum((outcome) => outcome.refused),
    longestGap: Math.max(...outcomes.map((outcome) => outcome.longestGap)),
  };
}
