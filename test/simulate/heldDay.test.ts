import { expect, test } from "vitest";

import { heldDay } from "./heldDay.ts";
import { playDay } from "./playDay.ts";

const DAYS = 10;

test(
  "whatever goes wrong, chargers do what events and holds ask 30 s later; every hold ends, and none is lost or comes back",
  { timeout: 300_000 },
  async () => {
    let holds = 0;
    for (let seed = 20_270_000; seed < 20_270_000 + DAYS; seed += 1) {
      const played = await playDay(heldDay(seed, 2));
      expect({ seed, failure: played.failure }).toEqual({ seed, failure: null });
      holds += played.holds;
    }
    expect(holds).toBeGreaterThan(10 * DAYS);
  },
);
