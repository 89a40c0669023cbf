/** The first index below `length` at which it holds, given that it holds at every later one too; `length`: nowhere. */
export function firstIndex(length: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The same over the entries of a list. */
export const firstWhere = <Entry>(list: readonly Entry[], holds: (entry: Entry) => boolean): number =>
  firstIndex(list.length, (index) => {
    const entry = list[index];
    return entry !== undefined && holds(entry);
  });
