/** Fractions in [0, 1) that repeat for the same seed (mulberry32), so that a finding can be had again. */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from 0 to below `bound`. */
export const below = (bound: number, random: () => number): number => Math.floor(random() * bound);

/** One of them; there has to be one. */
export function oneOf<T>(choices: readonly T[], random: () => number): T {
  const chosen = choices[below(choices.length, random)];
  if (chosen === undefined) throw new Error("nothing to choose from");
  return chosen;
}
