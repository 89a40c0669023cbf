import { firstWhere } from "../reporting/bisect.ts";

/** Negative: `a` stands before `b`. Zero: they may stand in either order. */
export type Order<T> = (a: T, b: T) => number;

/** Puts a value into its place in a list that is in order: log n comparisons and one move of memory. */
export function insert<T>(list: T[], value: T, order: Order<T>): void {
  list.splice(placeOf(list, value, order), 0, value);
}

/** Takes this very value out of a list that is in order. False: it was not in it. */
export function remove<T>(list: T[], value: T, order: Order<T>): boolean {
  const index = indexIn(list, value, order);
  if (index === null) return false;
  list.splice(index, 1);
  return true;
}

/** Where this very value stands in a list that is in order; null: it is not in it. */
export function indexIn<T>(list: readonly T[], value: T, order: Order<T>): number | null {
  for (let index = placeOf(list, value, order); index < list.length; index += 1) {
    const found = list[index] as T;
    if (found === value) return index;
    if (order(value, found) < 0) return null;
  }
  return null;
}

/** The index of the first value that does not stand before this one. */
const placeOf = <T>(list: readonly T[], value: T, order: Order<T>): number =>
  firstWhere(list, (other) => order(other, value) >= 0);
