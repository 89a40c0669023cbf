import { expect } from "vitest";

import { dayFrom } from "./generate.ts";
import { playDay } from "./playDay.ts";

/** A hundred in all; some at a time, so that a machine with much to do shows which it has done. */
const DAYS = 20;
/** For twenty days on two cores that have other things to do. */
export const PATIENCE = { timeout: 300_000 };

/** Twenty days from a seed on break nothing, and are days in which something happens. */
export async function twentyDaysGoWell(first: number): Promise<void> {
  const watched = { looks: 0, all: 0, held: 0 };
  for (let seed = first; seed < first + DAYS; seed += 1) {
    const played = await playDay(dayFrom(seed, 2));
    expect({ seed, failure: played.failure }).toEqual({ seed, failure: null });
    watched.looks += played.watched.looks;
    watched.all += played.watched.all;
    watched.held += played.watched.held;
  }
  // A day that excuses everything, or in which nothing happens, would show nothing.
  expect(watched.all / watched.looks).toBeGreaterThan(0.5);
  expect(watched.held / watched.looks).toBeGreaterThan(0.1);
}
