import { expect, test } from "vitest";

import { aDay, asked, time } from "./aDay.ts";
import type { Action, Day, PlannedMake } from "./plan.ts";
import { bayFreedByAClaim, makesSayNothing } from "./plants.ts";
import { playDay } from "./playDay.ts";
import { twoKindsDay } from "./twoKindsDay.ts";

const GO_E: PlannedMake = { profile: "go-e-v2", params: { serial: "100001" }, step: 1, takesWatts: false };
const MAKES: readonly PlannedMake[] = [
  GO_E,
  { profile: "victron-evcs", params: { portalId: "gx1" }, step: 1, takesWatts: false },
];

/** bay-001 is of a make and the home of v1. bay-002 is native, names its vehicle, and is the home of v2. */
function depot(make: PlannedMake, ...actions: readonly Action[]): Day {
  const day = aDay([asked("E1", "01:00", "02:00"), ...actions]);
  return {
    ...day,
    chargers: day.chargers.flatMap((charger) => [
      { ...charger, id: "bay-001", make },
      { ...charger, id: "bay-002", tells: true },
    ]),
    vehicles: ["1", "2"].map((number) => ({
      id: `v${number}`,
      charger: `bay-00${number}`,
      maxCurrent: null,
    })),
    ends: time("03:00"),
  };
}

const plug = (at: string, charger: string, vehicle = "v1"): Action => ({
  kind: "plug",
  at: time(at),
  charger,
  vehicle,
});
const CLAIM: Action = {
  kind: "claims",
  at: time("01:20"),
  charger: "bay-002",
  vehicle: "v1",
  lasts: time("00:20"),
};

/** "01:00 bay-001 10 A": each change of what a charger is sent. */
function changesIn(sent: readonly string[]): readonly string[] {
  const last = new Map<string, string>();
  return sent.flatMap((message) => {
    const [, at = "", charger = "", level = ""] = /^(.{5}).{7} (\S+) \S+ (.+) for /.exec(message) ?? [];
    const isNew = last.get(charger) !== level;
    last.set(charger, level);
    return isNew ? [`${at} ${charger} ${level}`] : [];
  });
}

test.each(MAKES)(
  "$profile: a vehicle takes its limit along to a native charger in the middle of an event, and back",
  async (make) => {
    const day = depot(make, plug("01:20", "bay-002"), plug("01:40", "bay-001"));
    const { failure, told, alarms } = await playDay(day);
    expect({ failure, alarms }).toEqual({ failure: null, alarms: [] });
    expect(changesIn(told).toSorted()).toEqual([
      "01:00 bay-001 10 A",
      "01:20 bay-001 free",
      "01:20 bay-002 10 A",
      "01:40 bay-001 10 A",
      "01:40 bay-002 free",
      "02:00 bay-001 free",
    ]);
  },
);

test.each(MAKES)(
  "$profile: a vehicle that draws at its own bay keeps its limit there, whatever a native charger names",
  async (make) => {
    const { failure, told, alarms, watched } = await playDay(depot(make, CLAIM));
    expect(failure).toBeNull();
    expect(changesIn(told)).toEqual([
      "01:00 bay-001 10 A",
      "01:20 bay-002 10 A",
      "01:40 bay-002 free",
      "02:00 bay-001 free",
    ]);
    expect(alarms).toEqual(["01:20:00 bay-001"]);
    expect(watched.keeps).toBeGreaterThan(100);
  },
);

test("an empty bay whose charger missed the release of a pause, as it restarted, is free for the next vehicle (seed 53000063)", async () => {
  const day = depot(
    GO_E,
    plug("00:30", "bay-002"),
    plug("01:20", "bay-002", "v2"),
    { kind: "reboot", at: time("02:00") - 2_000, charger: "bay-001", lasts: 5_000 },
    plug("02:30", "bay-001", "v2"),
  );
  const event = asked("E1", "01:00", "02:00", {
    ask: { kind: "current", amperes: 4.7 },
    vehicles: ["v1", "v2"],
  });
  const actions = day.actions.map((action) => (action.kind === "put" ? event : action));
  const { failure, told, alarms } = await playDay({ ...day, actions });
  expect({ failure, alarms }).toEqual({ failure: null, alarms: [] });
  expect(changesIn(told)).toContain("02:00 bay-001 free");
});

test("a vehicle that is unplugged and plugged in again within a second ends what its bay must keep", async () => {
  // One second after this make told all: 64 s pass before it tells that something flows again.
  const again: Action = { ...plug("01:20", "bay-001"), at: time("01:20:07") };
  const { failure, told } = await playDay(depot(GO_E, CLAIM, again));
  expect(failure).toBeNull();
  expect(changesIn(told)).toContain("01:21 bay-001 free");
});

test.each([
  ["a bay that a claim at another kind of charger frees", bayFreedByAClaim, CLAIM, /^bay-001 with v1, named/],
  [
    "a bay that stays limited after its vehicle left for another kind of charger",
    makesSayNothing,
    plug("01:20", "bay-002"),
    /^bay-001 with nobody does 10 A, should free/,
  ],
] as const)("the simulation finds %s", async (_, plant, action, words) => {
  for (const make of MAKES) {
    const { failure } = await playDay(depot(make, action), { plant });
    expect(failure?.invariant).toMatch(/^L1/);
    expect(failure?.words).toMatch(words);
  }
});

test("a vehicle that moves between native chargers and makes has its limit where it stands after any fault, two hours from each seed", async () => {
  const watched = { keeps: 0, free: 0 };
  for (const seed of [20_267_004, 20_267_005]) {
    const played = await playDay(twoKindsDay(seed, 6, 2));
    expect({ seed, failure: played.failure }).toEqual({ seed, failure: null });
    watched.keeps += played.watched.keeps;
    watched.free += played.watched.free;
  }
  expect(watched.keeps).toBeGreaterThan(100);
  expect(watched.free).toBeGreaterThan(100);
});
