import { expect, test } from "vitest";

import { aDay, asked, time } from "./aDay.ts";
import { dayFrom } from "./generate.ts";
import { type Action, MINUTE, type PlannedCharger, type PlannedEvent } from "./plan.ts";
import { playDay } from "./playDay.ts";

/** Each command once, with the moment it went out first: "08:00:00.000 bay-01 10 A for E1". */
function commands(told: readonly string[]): readonly string[] {
  const known = new Set<string>();
  return told.flatMap((line) => {
    const [at, charger, id = "", ...rest] = line.split(" ");
    if (known.has(id)) return [];
    known.add(id);
    return [[at, charger, ...rest].join(" ")];
  });
}

async function played(...actions: readonly Action[]) {
  const { failure, told, missed } = await playDay(aDay(actions));
  expect(failure).toBeNull();
  return { told: commands(told), missed };
}

/** The machine starts without a battery-backed clock, and is told the time so much later. */
const noTime = (at: string, lasts: number): Action => ({
  kind: "noTime",
  at: time(at),
  downFor: 1_000,
  lasts,
});
const suspend = (at: string, lasts: number): Action => ({ kind: "suspend", at: time(at), lasts });

test("F22 S2: back at 1970, what ran goes on, and nothing new starts until the time is known", async () => {
  const { told, missed } = await played(
    asked("E1", "08:00", "09:00"),
    asked("E2", "08:31", "09:30", { priority: 0 }),
    noTime("08:30:30", MINUTE),
  );
  expect(told).toEqual([
    "08:00:00.000 bay-01 10 A for E1",
    expect.stringMatching(/^08:32:\d\d\.\d+ bay-01 10 A for E2$/),
    "09:30:00.000 bay-01 free for E2",
  ]);
  expect(missed).toEqual([]);
});

const bay = (id: string): PlannedCharger => ({
  id,
  maxCurrent: 32,
  belowMinimum: "pause",
  phases: 3,
  tells: false,
});

test("F05 F22: a pause is repeated until it is noticed that the clock was set past the end of its event (seed 47000325)", async () => {
  const { failure, told } = await playDay({
    ...aDay([
      asked("E1", "08:00", "09:00", { ask: { kind: "current", amperes: 0 }, vehicles: ["v1", "v2"] }),
      // The release at 09:00 is not on disk when the gateway dies.
      { kind: "disk", how: "full", at: time("08:50"), lasts: 20 * MINUTE },
      { kind: "brokerSlow", at: time("09:01"), lasts: 8 * MINUTE },
      { kind: "noTime", at: time("09:02"), downFor: 129, lasts: 3_520 },
    ]),
    seed: 14,
    chargers: [bay("bay-01"), bay("bay-02")],
    vehicles: [
      { id: "v1", charger: "bay-01", maxCurrent: null },
      { id: "v2", charger: "bay-02", maxCurrent: null },
    ],
  });
  expect(failure).toBeNull();
  const after = told.filter((line) => line > "09:02:03.520");
  expect(after[0]).toMatch(/^09:02:04\.\d+ bay-02 1795219200-2 pause for E1$/);
  expect(after.slice(1).every((line) => line.endsWith("free for E1"))).toBe(true);
});

test("F22: the gate opens after five minutes at 1970; with the time nothing is missed that was acted on, nor sent again", async () => {
  const { told, missed } = await played(
    asked("E1", "07:00", "07:30"),
    asked("E2", "08:00", "08:10"),
    asked("E3", "09:00", "09:30"),
    { kind: "crash", at: time("07:55"), point: "at once", downFor: 20 * MINUTE },
    noTime("08:30", 20 * MINUTE),
  );
  expect(told).toEqual([
    "07:00:00.000 bay-01 10 A for E1",
    "07:30:00.000 bay-01 free for E1",
    "09:00:00.000 bay-01 10 A for E3",
    "09:30:00.000 bay-01 free for E3",
  ]);
  expect(missed).toEqual([
    expect.stringMatching(
      /^08:15:00\.\d+ v1 missed event E2, 08:00:00 to 08:10:00: the daemon did not evaluate/,
    ),
  ]);
});

test("F01 F21: a window that was acted on, and lies ahead again by a clock that was set back, may be missed after a crash", async () => {
  expect((await playDay(dayFrom(43_500_022, 2))).failure).toBeNull();
});

test("F01 F22: a crash while 1970 was believed makes nothing missed that was acted on", async () => {
  const { told, missed } = await played(
    { ...asked("E1", "08:00", "09:00"), at: time("08:30") },
    noTime("08:50", 20 * MINUTE),
    { kind: "crash", at: time("09:15"), point: "at once", downFor: 1_000 },
  );
  expect(told).toEqual([
    expect.stringMatching(/^08:30:00\.\d+ bay-01 10 A for E1$/),
    expect.stringMatching(/^08:55:\d\d\.\d+ bay-01 free for E1$/),
  ]);
  expect(missed).toEqual([]);
});

test("F21 F22: an event that goes and comes again while 1970 is believed is not missed where it was acted on", async () => {
  const event = asked("E1", "08:00", "09:00");
  const { missed } = await played(
    event,
    noTime("08:50", 20 * MINUTE),
    { kind: "withdraw", at: time("09:01"), id: "E1", deliveries: [100] },
    { ...event, at: time("09:02") },
  );
  expect(missed).toEqual([]);
});

test("F21 F22: an event that was acted on and withdrawn, and comes back at 1970, is not missed", async () => {
  const event = asked("E1", "08:00", "09:00");
  const { missed } = await played(
    event,
    { kind: "withdraw", at: time("09:10"), id: "E1", deliveries: [100] },
    noTime("09:20", 20 * MINUTE),
    { ...event, at: time("09:30") },
  );
  expect(missed).toEqual([]);
});

/** At a time the partner has one event from 08:00 to 09:00, and one from 09:12 to 09:14. */
const twoEvents = (at: string, changes: Partial<PlannedEvent> = {}): readonly Action[] => [
  { ...asked("E1", "08:00", "09:00", changes), at: time(at) },
  { ...asked("E2", "09:12", "09:14", changes), at: time(at) },
];

test("F21 F22: an event that was acted on, then edited to nothing, and comes back at 1970, is not missed (seed 47001606)", async () => {
  const { missed } = await played(
    ...twoEvents("00:01"),
    noTime("09:00:10", 20 * MINUTE),
    // For five minutes the clock is doubted, and 1970 is not believed yet.
    ...twoEvents("09:00:40", { ask: { kind: "unknown" } }),
    ...twoEvents("09:10"),
  );
  expect(missed).toEqual([expect.stringMatching(/ v1 missed event E2, 09:12:00 to 09:14:00: /)]);
});

test("F01 F21: a clock that was years ahead, and was set right, ends nothing at the next start", async () => {
  const { told } = await played(
    asked("E1", "08:00", "10:00"),
    { kind: "clock", at: time("08:30"), by: 365 * 24 * 60 * MINUTE, lasts: 2 * MINUTE },
    { kind: "partner", at: time("08:39"), how: "silent", lasts: 10 * MINUTE },
    { kind: "crash", at: time("08:40"), point: "at once", downFor: 1_000 },
  );
  expect(told.filter((line) => line > "08:40")).toEqual(["10:00:00.000 bay-01 free for E1"]);
});

test("F22: an event that begins and ends while nothing new may start is recorded as missed, once", async () => {
  const { told, missed } = await played(
    asked("E1", "08:00", "08:30"),
    asked("E2", "08:31", "08:33"),
    noTime("08:30:10", 10 * MINUTE),
  );
  expect(told).toEqual(["08:00:00.000 bay-01 10 A for E1", "08:30:00.000 bay-01 free for E1"]);
  expect(missed).toEqual([
    "08:33:00.000 v1 missed event E2, 08:31:00 to 08:33:00: the event arrived too late, or new starts were not allowed in that time",
  ]);
});

test("F20 F21: a clock that was ahead for a while has not used up the window that it passed, which no vehicle misses once more", async () => {
  const { told, missed } = await played(
    asked("E1", "08:00", "08:20"),
    asked("E2", "10:00", "10:30"),
    { kind: "clock", at: time("07:00"), by: 120 * MINUTE, lasts: 10 * MINUTE },
    { kind: "clock", at: time("09:00"), by: -120 * MINUTE, lasts: 30 * MINUTE },
  );
  expect(told.filter((line) => line.endsWith("E2"))).toEqual([
    "10:00:00.000 bay-01 10 A for E2",
    "10:30:00.000 bay-01 free for E2",
  ]);
  expect(told).toContain("08:00:00.000 bay-01 10 A for E1");
  expect(missed).toHaveLength(1);
});

test("F21: a clock that was back, believed for want of a better one, and right again at once leaves no vehicle unstarted (seed 20261444)", async () => {
  const { told, missed } = await played(asked("E1", "10:01", "12:00"), {
    kind: "clock",
    at: time("09:57:20"),
    by: -45 * MINUTE,
    lasts: 5 * MINUTE + 20_000,
  });
  expect(told).toEqual([
    expect.stringMatching(/^10:0[23]:\d\d\.\d+ bay-01 10 A for E1$/),
    "12:00:00.000 bay-01 free for E1",
  ]);
  expect(missed).toEqual([]);
});

test("F10 F27: a machine that slept acts on what is still open, ends what is over, and has missed the rest", async () => {
  const { told, missed } = await played(
    asked("E1", "08:00", "09:00"),
    asked("E2", "10:00", "10:10"),
    asked("E3", "12:00", "13:00"),
    suspend("07:50", 20 * MINUTE),
    suspend("08:30", 5 * MINUTE),
    suspend("09:55", 20 * MINUTE),
    suspend("12:50", 20 * MINUTE),
  );
  expect(told).toEqual([
    expect.stringMatching(/^08:1\d:\d\d\.\d+ bay-01 10 A for E1$/),
    "09:00:00.000 bay-01 free for E1",
    "12:00:00.000 bay-01 10 A for E3",
    expect.stringMatching(/^13:1\d:\d\d\.\d+ bay-01 free for E3$/),
  ]);
  expect(missed).toEqual([
    expect.stringMatching(
      /^10:15:\d\d\.\d+ v1 missed event E2, 10:00:00 to 10:10:00: the daemon did not evaluate/,
    ),
  ]);
});

test.each([
  ["longest", "2026-10-24T22:00:00Z"],
  ["shortest", "2027-03-27T23:00:00Z"],
])(
  "F24: on the %s day of the year chargers receive the same at the same moments, wherever the depot is",
  async (_, start) => {
    const midnight = Date.parse(start);
    const told = async (zone: string): Promise<readonly string[]> => {
      const day = dayFrom(24, 2, { midnight, zone, writtenIn: "Europe/Oslo" });
      const played = await playDay({ ...day, knobs: { ...day.knobs, reports: false } });
      expect(played.failure).toBeNull();
      return played.told;
    };
    const inOslo = await told("Europe/Oslo");
    expect(inOslo.length).toBeGreaterThan(100);
    expect(await told("Pacific/Apia")).toEqual(inOslo);
  },
);
