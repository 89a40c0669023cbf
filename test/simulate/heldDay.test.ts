import { expect, test } from "vitest";

import { heldDay } from "./heldDay.ts";
import { playDay } from "./playDay.ts";

/** Of these, the last one has a full disk across the end of a hold over several chargers. */
const DAYS = 4;
const FIRST = 20_270_007;

test("chargers obey events and holds again 30 s after any fault; every hold and period of observe ends as asked, and none is lost or comes back", async () => {
  let holds = 0;
  const ended = { energy: 0, unplugged: 0, events: 0, guarded: 0, periods: 0 };
  for (let seed = FIRST; seed < FIRST + DAYS; seed += 1) {
    const played = await playDay(heldDay(seed, 2));
    expect({ seed, failure: played.failure }).toEqual({ seed, failure: null });
    holds += played.holds;
    for (const name of ["energy", "unplugged", "events", "guarded", "periods"] as const)
      ended[name] += played.ended[name];
  }
  expect(holds).toBeGreaterThan(10 * DAYS);
  expect(ended.energy).toBeGreaterThan(DAYS);
  expect(ended.unplugged).toBeGreaterThan(DAYS / 4);
  expect(ended.events).toBeGreaterThan(DAYS / 4);
  expect(ended.guarded).toBeGreaterThan(0);
  expect(ended.periods).toBeGreaterThan(DAYS);
});
