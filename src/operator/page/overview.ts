import type { Vehicle } from "./apiAnswers.ts";

/** Spans of time that overlap get lanes of their own. */
export function lanesOf<T extends { readonly from: number; readonly until: number }>(
  bars: readonly T[],
): readonly (readonly T[])[] {
  const lanes: T[][] = [];
  for (const bar of bars) {
    const free = lanes.find((lane) => (lane.at(-1)?.until ?? -Infinity) <= bar.from);
    if (free === undefined) lanes.push([bar]);
    else free.push(bar);
  }
  return lanes;
}

/** Number of vehicles that have a setpoint of an event, as steps in time. */
export function limitedSteps(
  list: readonly Pick<Vehicle, "planned">[],
): readonly { readonly at: number; readonly count: number }[] {
  const changes = new Map<number, number>();
  const add = (at: number, by: number): void => void changes.set(at, (changes.get(at) ?? 0) + by);
  for (const { planned } of list)
    for (const { from, until } of merged(planned)) {
      add(from, 1);
      add(until, -1);
    }
  let count = 0;
  return [...changes]
    .toSorted(([a], [b]) => a - b)
    .map(([at, by]) => {
      count += by;
      return { at, count };
    });
}

/** Windows of one vehicle that overlap count once. */
function merged(planned: Vehicle["planned"]): readonly { from: number; until: number }[] {
  const windows = planned
    .map(({ from, until }) => ({ from: Date.parse(from), until: Date.parse(until) }))
    .toSorted((a, b) => a.from - b.from);
  const result: { from: number; until: number }[] = [];
  for (const window of windows) {
    const last = result.at(-1);
    if (last !== undefined && window.from <= last.until) last.until = Math.max(last.until, window.until);
    else result.push({ ...window });
  }
  return result;
}
