import type { Action, Day } from "./plan.ts";
import type { Failure } from "./playDay.ts";

/**
 * The same failure with as few actions as can be found: takes out ever smaller pieces of the day, as long as what is
 * left still breaks the same invariant (delta debugging). `play` answers what a day breaks; `tries` bounds its calls.
 */
export async function shrunk(
  day: Day,
  failure: Failure,
  play: (day: Day) => Promise<Failure | null>,
  tries = 400,
): Promise<{ readonly day: Day; readonly failure: Failure }> {
  let best = { day: { ...day, actions: upTo(day.actions, failure.at) }, failure };
  let left = tries;
  let size = Math.ceil(best.day.actions.length / 2);
  while (size >= 1 && left > 0) {
    const before = best.day.actions.length;
    // From the end: what came last matters most often, and what is taken out there moves nothing before it.
    for (let from = best.day.actions.length - size; from > -size && left > 0; from -= size) {
      const actions = without(best.day.actions, Math.max(from, 0), from + size);
      left -= 1;
      const smaller = { ...best.day, actions };
      const found = await play(smaller);
      if (found?.invariant !== failure.invariant) continue;
      best = { day: { ...smaller, actions: upTo(actions, found.at) }, failure: found };
      from = Math.min(from, best.day.actions.length);
    }
    if (size === 1 && best.day.actions.length === before) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return best;
}

const upTo = (actions: readonly Action[], at: number): readonly Action[] =>
  actions.filter((action) => action.at <= at);

const without = (actions: readonly Action[], from: number, to: number): readonly Action[] => [
  ...actions.slice(0, from),
  ...actions.slice(to),
];
