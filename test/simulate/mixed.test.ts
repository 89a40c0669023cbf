import { expect, test } from "vitest";

import { aDay, asked, time } from "./aDay.ts";
import { mixedDay } from "./mixedDay.ts";
import { greetedAnew } from "./plants.ts";
import { playDay } from "./playDay.ts";

/**
 * Hours that excuse everything, or in which nothing happens, would show nothing. The shares of looks without an excuse
 * (0.30 to 0.36 here) follow from what the seed draws, so half of that is asked for.
 */
async function plays(seed: number, chargers: number, hours: number): Promise<void> {
  const { failure, watched } = await playDay(mixedDay(seed, chargers, hours));
  expect({ seed, failure }).toEqual({ seed, failure: null });
  expect(watched.all / watched.looks).toBeGreaterThan(0.15);
  expect(watched.held / watched.looks).toBeGreaterThan(0.01);
}

test.each([20_266_001, 60])(
  "F80 F88 F89: chargers of ten makes, whatever goes wrong: all is well 30 s later, three hours from seed %i",
  async (seed) => plays(seed, 10, 3),
);

test("a gateway that restarts in the middle of an event does not take its own limit for that of the owner of an evcc", async () => {
  const day = aDay([
    asked("E1", "01:00", "02:00"),
    { kind: "crash", at: time("01:30"), point: "at once", downFor: 2_000 },
  ]);
  const evcc = { profile: "evcc", params: { id: "1" }, step: 0.1, takesWatts: false };
  const chargers = day.chargers.map((charger) => ({ ...charger, make: evcc }));
  expect((await playDay({ ...day, chargers, ends: time("03:00") })).failure).toBeNull();
});

test("a hundred chargers of ten makes are a depot like any other, for three quarters of an hour", async () =>
  plays(20_266_200, 100, 0.75));

test("the simulation finds an online of a make that counts as a return each time", async () => {
  const { failure } = await playDay(mixedDay(503, 10, 3), { plant: greetedAnew });
  expect(failure?.invariant).toMatch(/^an undisturbed charger/);
});
