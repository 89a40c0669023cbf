import { describe, expect, test } from "vitest";

import type { SetPayload } from "../support/aFloor.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { postgresMissing } from "../support/postgres.ts";
import { campaign } from "./campaign.ts";
import { FAULTS } from "./depot.ts";
import { type Received, staleIn, tooLateIn } from "./oracle.ts";
import { lateIn } from "./stalls.ts";

/** `npm run failover` makes 1,000, or as many as it is told. */
const FAILOVERS = 50;
const SEED = 1;

const received = (epoch: number, seq: number, at: number, accepted = true): Received => ({
  charger: "bay-01",
  at,
  accepted,
  set: {
    v: 1,
    id: `${epoch}-${seq}`,
    epoch,
    seq,
    kind: "current",
    value: 16,
    unit: "A",
    until: null,
    lease: 15,
    vehicle: "veh-1",
    event: "EV-1",
  } satisfies SetPayload,
});
const decided = (epoch: number, seq: number, at: number) => ({ charger: "bay-01", epoch, seq, at });

test("the oracle finds a command that a charger accepted after a newer one was decided, and no other", () => {
  const old = received(7, 1, 10_000);
  for (const newer of [decided(8, 2, 1_000), decided(7, 2, 1_000)])
    expect(staleIn([old], [newer])).toEqual([
      { received: old, newer, from: 1_000, until: 10_000, overBy: 8_000 },
    ]);
  expect(staleIn([received(7, 1, 10_000, false)], [decided(8, 2, 1_000)])).toEqual([]);
  expect(staleIn([old], [decided(8, 2, 9_900)])).toEqual([]);
  expect(staleIn([old], [decided(7, 1, 1_000), decided(6, 9, 2_000)])).toEqual([]);
  expect(staleIn([old], [{ ...decided(8, 2, 1_000), charger: "bay-02" }])).toEqual([]);
});

test("the oracle finds a decision that is stored although the next leader had begun", () => {
  const leaders = [
    { epoch: 7, since: 1_000 },
    { epoch: 8, since: 5_000 },
  ];
  expect(tooLateIn([decided(7, 1, 4_000), decided(8, 1, 6_000)], leaders)).toEqual([]);
  expect(tooLateIn([decided(7, 2, 6_000)], leaders)).toEqual([decided(7, 2, 6_000)]);
});

test("only the time in which the campaign itself did not run explains a violation", () => {
  const stalls = [
    { from: 1_000, until: 1_500 },
    { from: 3_000, until: 9_000 },
  ];
  expect(lateIn(stalls, 0, 2_000)).toBe(500);
  expect(lateIn(stalls, 1_200, 4_000)).toBe(1_300);
  expect(lateIn(stalls, 10_000, 20_000)).toBe(0);
});

describe.skipIf(!mosquittoAvailable || postgresMissing() !== null)("failovers", () => {
  test("after fifty faults of every kind the site is led again: nothing lost, nothing twice, nothing stale", async () => {
    const outcome = await campaign({ count: FAILOVERS, seed: SEED, depots: 5, until: Infinity });
    expect(outcome.violations, `npm run failover -- --count ${FAILOVERS} --seed ${SEED}`).toEqual([]);
    expect(outcome.rounds).toHaveLength(FAILOVERS);
    expect(new Set(outcome.rounds.map(({ kind }) => kind))).toEqual(new Set(FAULTS));
    expect(outcome.deliveries).toBeGreaterThan(FAILOVERS);
  });
});
