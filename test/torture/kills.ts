import { below, oneOf } from "../fuzz/chance.ts";

/** Moments that a daemon can be killed at by its own hand: see failpoint.ts. */
export const POINTS = [
  "commit.before",
  "commit.after",
  "publish.before",
  "publish.after",
  "puback.before",
  "puback.after",
  "answer.before",
  "answer.after",
] as const;

/** How one process ends, and how long there is none afterwards, in ms. */
export type Kill = { readonly downFor: number } & (
  | { readonly kind: "moment"; readonly since: "start" | "up"; readonly ms: number }
  | { readonly kind: "point"; readonly point: (typeof POINTS)[number]; readonly nth: number }
);

/** Every second one at random; the others go through the points in turn, from `first` on. */
export const killsFrom = (first: number, count: number, random: () => number): readonly Kill[] =>
  Array.from({ length: count }, (_, index) => {
    const downFor = oneOf([0, 0, 0, 200, 700], random);
    const number = first + index;
    if (number % 2 === 0) {
      const since = oneOf(["start", "up", "up"] as const, random);
      return { kind: "moment", since, ms: below(since === "start" ? 1_500 : 1_800, random), downFor };
    }
    const point = POINTS[((number - 1) / 2) % POINTS.length] ?? "commit.before";
    return { kind: "point", point, nth: oneOf([1, 1, 1, 2, 2, 3, 5], random), downFor };
  });
