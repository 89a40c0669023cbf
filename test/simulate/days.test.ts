import { expect, test } from "vitest";

import { dayFrom } from "./generate.ts";
import { playDay } from "./playDay.ts";

/** `npm run simulate` plays a hundred, and as many as it is told. */
const DAYS = 6;
const FIRST = 20_261_000;

test("F01 F20 F21 F22 F27 F30-F35 F37 F40 F41 F43 F50-F53 F59 F80 F85 F88-F92 L1 L3 L4: whatever goes wrong, all is well 30 s later", async () => {
  const watched = { looks: 0, all: 0, held: 0 };
  for (let seed = FIRST; seed < FIRST + DAYS; seed += 1) {
    const played = await playDay(dayFrom(seed, 2));
    expect({ seed, failure: played.failure }).toEqual({ seed, failure: null });
    watched.looks += played.watched.looks;
    watched.all += played.watched.all;
    watched.held += played.watched.held;
  }
  // A day that excuses everything, or in which nothing happens, would show nothing.
  expect(watched.all / watched.looks).toBeGreaterThan(0.5);
  expect(watched.held / watched.looks).toBeGreaterThan(0.1);
});

test("the same seed plays the same day, to the last message", async () => {
  const [once, again] = [await playDay(dayFrom(7, 2)), await playDay(dayFrom(7, 2))];
  expect(again).toEqual(once);
  expect(await playDay(dayFrom(8, 1))).not.toEqual(once);
});
