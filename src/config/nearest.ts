/** Edits (insert, remove, replace, swap of neighbours) that turn `a` into `b`. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    rows[i] = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const cost = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        replaced,
        swapped ? at(i - 2, j - 2) + 1 : Infinity,
      );
      rows[i]?.push(cost);
    }
  }
  return at(a.length, b.length);
}

const fold = (text: string): string => text.slice(0, 64).toLowerCase().replaceAll(/[-_ ]/g, "");

/** The known word that was probably meant, whatever its case, "-" or "_"; null: none is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  const near = known
    .map((candidate) => ({ candidate, edits: distance(fold(word), fold(candidate)) }))
    .toSorted((a, b) => a.edits - b.edits)[0];
  return near !== undefined && near.edits <= Math.max(1, word.length / 3) ? near.candidate : null;
}
