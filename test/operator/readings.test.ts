import { expect, test } from "vitest";

import type { Reading } from "../../src/domain/reading.ts";
import { after, amperes, chargerId, iso, minutes, seconds } from "../../src/domain/units.ts";
import { readingsView, sitePowerView } from "../../src/operator/listViews.ts";
import { aPicture } from "../support/aPicture.ts";
import { measured, told } from "../support/aReading.ts";
import { NOON } from "../store/sqlite/words.ts";

const depot = aPicture();
const [bay = chargerId("")] = depot.chargers.keys();
const [vehicle = ""] = depot.vehicles.keys();

/** A store that holds these readings of one charger. */
const holding = (...all: readonly Reading[]) => ({
  readings: async (_chargers: Iterable<unknown>, from: number, until: number) =>
    all.filter(({ at }) => at >= from && at < until),
  seats: async () => [bay],
});

const view = async (query: Parameters<typeof readingsView>[2], ...all: readonly Reading[]) => {
  const answer = await readingsView(depot, holding(...all), query, NOON);
  return answer.ok ? answer.value : answer.problem.errors;
};

test("a stretch keeps its peak, an implausible value is left out, and setpoints keep their level", async () => {
  const start = after(NOON, minutes(-60));
  const later = after(start, minutes(10));
  expect(
    await view(
      { charger: bay },
      measured("current", 10, start),
      measured("current", 31, after(start, seconds(20))),
      measured("current", 500, after(start, seconds(30)), { quality: "implausible" }),
      measured("current", 12, later),
      measured("power", 7000, later),
      told({ kind: "current", amperes: amperes(16) }, later),
    ),
  ).toMatchObject({
    charger: bay,
    vehicle: null,
    until: iso(NOON),
    current: [
      [start, 31],
      [later, 12],
    ],
    power: [[later, 7000]],
    soc: [],
    setpoints: [{ at: iso(later), level: { currentA: 16 } }],
  });
});

test("a vehicle has the readings of every charger that it was on, and none of another vehicle", async () => {
  const start = after(NOON, minutes(-5));
  const id = depot.vehicles.get(vehicle as never)?.id ?? null;
  expect(
    await view(
      { vehicle },
      measured("current", 10, start, { vehicle: id }),
      measured("current", 12, start, { vehicle: null }),
    ),
  ).toMatchObject({ vehicle, charger: null, current: [[start, 10]] });
});

test("a mistake is answered with its place", async () => {
  expect(await view({})).toMatchObject([{ path: "charger" }]);
  expect(await view({ vehicle: "nobody" })).toMatchObject([{ path: "vehicle", found: "nobody" }]);
  expect(await view({ charger: bay, from: "noon" })).toMatchObject([{ path: "from", found: "noon" }]);
  // JavaScript reads both of them: as May 2001, and as December 1.
  expect(await view({ charger: bay, from: "5" })).toMatchObject([{ path: "from", found: "5" }]);
  const november31 = "2026-11-31T00:00:00Z";
  expect(await view({ charger: bay, until: november31 })).toMatchObject([
    { path: "until", found: november31 },
  ]);
  expect(await view({ charger: bay, until: "x", from: iso(NOON) })).toMatchObject([{ path: "until" }]);
  expect(await view({ charger: bay, from: iso(after(NOON, minutes(-6000))) })).toMatchObject([
    { path: "from", expected: "before until, and at most 3 days before it" },
  ]);
});

test("the power of the past is the sum of what was measured, beside the most that the setpoints allowed; without readings it is not known", async () => {
  const from = after(NOON, minutes(-60));
  const charger = depot.chargers.get(bay);
  const perAmpere = (charger?.phases ?? 0) * (charger?.voltage ?? 0);
  const answer = await sitePowerView(
    { chargers: new Map(charger === undefined ? [] : [[bay, charger]]) },
    holding(
      measured("power", 9000, after(from, minutes(10))),
      measured("power", 7000, after(from, minutes(15))),
      measured("power", 99_000, after(from, minutes(16)), { quality: "implausible" }),
      told({ kind: "current", amperes: amperes(10) }, after(from, minutes(15))),
      measured("power", 0, after(from, minutes(20))),
      told({ kind: "pause" }, after(from, minutes(20))),
    ),
    { from: iso(from) },
    NOON,
  );
  if (!answer.ok) throw new Error(answer.problem.detail);
  const { samples } = answer.value as {
    readonly samples: readonly Readonly<Record<"at" | "measuredW" | "atMostW", unknown>>[];
  };
  const at = (minute: number) => {
    const found = samples.find((sample) => sample.at === iso(after(from, minutes(minute))));
    return [found?.measuredW, found?.atMostW];
  };
  const most = (charger?.maxCurrent ?? 0) * perAmpere;
  expect([0, 10, 16, 20, 30, 31].map(at)).toEqual([
    [null, null],
    [9000, most],
    [7000, 10 * perAmpere],
    [0, 0],
    [0, 0],
    [null, null],
  ]);
  const wrong = await sitePowerView({ chargers: new Map() }, holding(), { from: "yesterday" }, NOON);
  expect(wrong).toMatchObject({ ok: false, problem: { errors: [{ path: "from" }] } });
});
