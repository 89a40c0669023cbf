import { describe, expect, test } from "vitest";

import { mosquittoAvailable } from "../support/mosquitto.ts";
import { campaign, heldCampaign, percentile } from "./campaign.ts";

/** `npm run torture -- --kills N` makes as many as it is told. */
const KILLS = 21;
const SEED = 20_261_121;

describe.skipIf(!mosquittoAvailable)("a daemon that is killed", () => {
  test("F01 S1 S2 S3 S5 S6 S7 S8 S9 L1: killed 21 times at random and around every commit, publish and acknowledge, chargers see what they see without", async () => {
    const outcome = await campaign({ kills: KILLS, seed: SEED, depots: 3, killsEach: 7 });
    expect(outcome.violations, `npm run torture -- --seed ${SEED}`).toEqual([]);
    const kills = [...outcome.kills.values()].reduce((sum, count) => sum + count, 0);
    expect(kills).toBeGreaterThanOrEqual(KILLS);
    // Not only from outside: the points in the middle of its work were met as well.
    expect(kills - (outcome.kills.get("outside") ?? 0)).toBeGreaterThan(KILLS / 10);
    expect(outcome.restarts.length).toBeGreaterThan(0);
    const [p50, p99] = [50, 99].map((percent) => percentile(outcome.restarts, percent));
    process.stdout.write(`${kills} kills; restart to first correct publish: p50 ${p50} ms, p99 ${p99} ms\n`);
  });

  test("F01 S7: killed 6 times while holds of every kind are opened and ended, each is there once and ends once by its own end, and the charger comes to the newest", async () => {
    const { violations, holds, kinds, kills } = await heldCampaign({ seed: SEED, kills: 6 });
    expect(violations, `npm run torture -- --holds --seed ${SEED} --kills 6`).toEqual([]);
    expect(kills).toBe(6);
    expect(holds).toBeGreaterThan(6);
    expect([...kinds].toSorted()).toEqual([
      "at",
      "charger",
      "energy",
      "events",
      "site",
      "soon",
      "unplugged",
      "vehicle",
    ]);
  });
});
