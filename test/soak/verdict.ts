/** A value as it was at a time, hours after the start. */
export interface Point {
  readonly hours: number;
  readonly value: number;
}

/** What makes a figure flat. */
export interface Rule {
  /** It grows by less than this in an hour, seen over the last two thirds: the first third is warming up. */
  readonly growth: number;
  /** It is never more than this, warm or not. */
  readonly most: number;
}

export interface Verdict {
  /** How it grows in an hour, in its own unit; 0 of fewer than two points. */
  readonly growth: number;
  readonly first: number;
  readonly last: number;
  readonly highest: number;
  readonly verdict: "flat" | "not flat" | "too short to tell";
}

/** A garbage collection comes every few minutes: what is seen over less than this tells when, not whether it grows. */
const LEAST_HOURS = 1 / 3;
/** Pairs grow with the square; so many points of an hour are plenty. */
const MOST_POINTS = 500;

/** Holds a figure to its rule. Too short a run is still held to `most`. */
export function verdictOn(points: readonly Point[], rule: Rule): Verdict {
  const settled = thinned(warm(points));
  const growth = medianSlope(settled);
  const highest = Math.max(...points.map(({ value }) => value));
  const seen = (settled.at(-1)?.hours ?? 0) - (settled[0]?.hours ?? 0);
  const grows = growth >= rule.growth;
  return {
    growth,
    first: settled[0]?.value ?? NaN,
    last: points.at(-1)?.value ?? NaN,
    highest,
    // Written so that a figure that could not be measured is not flat.
    verdict: !(highest <= rule.most)
      ? "not flat"
      : seen < LEAST_HOURS
        ? "too short to tell"
        : grows
          ? "not flat"
          : "flat",
  };
}

function warm(points: readonly Point[]): readonly Point[] {
  const [from, until] = [points[0]?.hours ?? 0, points.at(-1)?.hours ?? 0];
  return points.filter(({ hours }) => hours >= from + (until - from) / 3);
}

function thinned(points: readonly Point[]): readonly Point[] {
  const every = Math.ceil(points.length / MOST_POINTS);
  return points.filter((_, index) => index % every === 0);
}

/** The median of the slopes between all pairs (Theil and Sen): a saw of collections, or one peak, does not tilt it. */
function medianSlope(points: readonly Point[]): number {
  const slopes = points.flatMap((from, index) =>
    points.slice(index + 1).map((to) => (to.value - from.value) / (to.hours - from.hours)),
  );
  const sorted = slopes.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
