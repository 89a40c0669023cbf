import { expect, test } from "vitest";

import { dayFrom } from "./generate.ts";
import { DAY, type Day } from "./plan.ts";
import {
  boundToTheDisk,
  evaluationsForgotten,
  greetedAnew,
  lostRelease,
  lostReport,
  missedWakeUp,
  offsetsRedrawn,
  renewedPastItsEnd,
  replayed,
  restamped,
  staleWins,
} from "./plants.ts";
import { type Failure, playDay } from "./playDay.ts";
import { shrunk } from "./shrink.ts";
import type { Plant } from "./simGateway.ts";
import { dayInWords } from "./words.ts";

const CHARGERS = 2;
const MOST_DAYS = 30;

/** The first day, from seed `first` on, that finds what is planted; `reports`: whether there are any on it. */
async function found(
  plant: Plant,
  { reports = false, first = 1 } = {},
): Promise<{ readonly day: Day; readonly failure: Failure }> {
  for (let seed = first; seed < first + MOST_DAYS; seed += 1) {
    const drawn = dayFrom(seed, CHARGERS);
    const day = { ...drawn, knobs: { ...drawn.knobs, reports } };
    const { failure } = await playDay(day, { plant });
    if (failure !== null) return { day, failure };
  }
  throw new Error(`${MOST_DAYS} days did not find it`);
}

test.each([
  ["a release that gets lost", lostRelease, /^L1/],
  ["offsets that are drawn anew at each start", offsetsRedrawn, /^S[123]/],
  ["commands that are replayed after a reconnection", replayed, /^S6|^S9|^F59|^one publish/],
  // The eleven days before do not find it.
  ["an old revision that wins over a newer one", staleWins, /^L1|^S5/, 12],
  ["a start after which nobody wakes up", missedWakeUp, /^L1/],
  ["a release that waits for the disk", boundToTheDisk, /^F05 a charger is released/],
  ["an online that counts as a return each time", greetedAnew, /^an undisturbed charger/],
  ["a pause that is repeated past its event while commits fail", renewedPastItsEnd, /^F05/],
] as const)("the simulation finds %s", async (_, plant, invariant, first: number = 1) => {
  const { failure } = await found(plant, { first });
  expect(failure.invariant).toMatch(invariant);
});

test("the simulation finds a window that was acted on and is said to be missed, when it is said", async () => {
  const { failure } = await found(evaluationsForgotten);
  expect(failure.invariant).toMatch(/^a window is missed once/);
  expect(failure.at).toBeLessThan(DAY);
});

test.each([
  ["a report that is said to be sent, and never was", lostReport, /^L3/],
  ["a report that is another each time it is sent", restamped, /the same each time/],
] as const)("the simulation finds %s", async (_, plant, invariant) => {
  const { failure } = await found(plant, { reports: true });
  expect(failure.invariant).toMatch(invariant);
});

test("a breach is cut down to a few lines that a person can follow", async () => {
  const plant = missedWakeUp;
  const { day, failure } = await found(plant);
  const least = await shrunk(day, failure, async (smaller) => (await playDay(smaller, { plant })).failure);
  expect(least.failure.invariant).toBe(failure.invariant);
  expect(least.day.actions.length).toBeLessThanOrEqual(4);
  const lines = dayInWords(least.day).join("\n");
  expect(lines).toMatch(/the gateway dies .*, back after/);
  expect(lines).toMatch(/partner has E\d+: .* for .*v\d/);
});
