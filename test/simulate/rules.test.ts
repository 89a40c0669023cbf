import { expect, test } from "vitest";

import { aDay, asked, time } from "./aDay.ts";
import { type Action, HOUR, MINUTE, type PlannedCharger } from "./plan.ts";
import { playDay } from "./playDay.ts";

const bay = (id: string, tells: boolean): PlannedCharger => ({
  id,
  maxCurrent: 32,
  belowMinimum: "pause",
  phases: 3,
  tells,
});

/** Two chargers, and v1 that is fixed to the first. The second one names the vehicle that is on it. */
async function failureOf(...actions: readonly Action[]) {
  const { failure } = await playDay({
    ...aDay(actions),
    chargers: [bay("bay-01", false), bay("bay-02", true)],
  });
  return failure;
}

const plug = (at: string, charger: string, vehicle: string | null): Action => ({
  kind: "plug",
  at: time(at),
  charger,
  vehicle,
});

test("a silent charger is limited by an event for the vehicle of another bay that it named last (seed 1730008597)", async () => {
  const failure = await failureOf(
    plug("07:00", "bay-02", "v1"),
    { kind: "mute", at: time("08:00"), charger: "bay-02", lasts: 22 * MINUTE },
    asked("E1", "08:06", "09:00"),
  );
  expect(failure).toBeNull();
});

test("the energy of a hold counts from the register of the charger that its vehicle moved to (seed 1049810808)", async () => {
  const failure = await failureOf(
    plug("05:00", "bay-02", "v2"),
    {
      kind: "hold",
      at: time("08:00"),
      scope: { vehicle: "v1" },
      level: null,
      until: { energyWh: 30_000 },
    },
    plug("08:10", "bay-02", "v1"),
  );
  expect(failure).toBeNull();
});

test("a hold until the unplug ends where another vehicle came before it, while the gateway was away (seed 42200068)", async () => {
  const day = aDay([
    { kind: "crash", at: time("03:31"), point: "at once", downFor: 8 * MINUTE },
    plug("03:34", "bay-01", "stranger"),
    { kind: "linkLost", at: time("03:35"), lasts: 19 * MINUTE },
    { kind: "hold", at: time("03:44"), scope: { vehicle: "v1" }, level: null, until: "unplugged" },
  ]);
  const { failure, ended } = await playDay({ ...day, chargers: [bay("bay-01", true)] });
  expect([failure, ended.unplugged]).toEqual([null, 1]);
});

test("a start recalls the vehicle that a charger named last, until the charger names the one that came meanwhile (seed 44000090)", async () => {
  // The charger names its vehicle once a minute, and did so just before this start.
  const downFor = time("00:09:48");
  const day = aDay([
    plug("07:00", "bay-02", "v1"),
    asked("E1", "08:00", "09:00"),
    { kind: "crash", at: time("08:20"), point: "at once", downFor },
    plug("08:25", "bay-02", "v2"),
  ]);
  const { failure } = await playDay({
    ...day,
    chargers: [bay("bay-01", true), bay("bay-02", true)],
    vehicles: [...day.vehicles, { id: "v2", charger: "bay-02", maxCurrent: null }],
  });
  expect(failure).toBeNull();
});

test("a bay that was limited while the charger that names its vehicle was offline for a moment keeps the limit (seed 47001373)", async () => {
  const pause = { ask: { kind: "current", amperes: 0 } } as const;
  const day = aDay([
    // The bay is empty and free after its vehicle has left.
    asked("E1", "06:00", "07:00", pause),
    plug("06:30", "bay-02", "v1"),
    plug("07:30", "bay-01", "stranger"),
    asked("E2", "08:00", "10:00", pause),
    { kind: "reboot", at: time("08:30:10"), charger: "bay-02", lasts: 1_500 },
  ]);
  const { failure, told, watched } = await playDay({
    ...day,
    chargers: [bay("bay-01", false), bay("bay-02", true)],
  });
  expect(failure).toBeNull();
  expect(told.filter((line) => /^08:30.* bay-01 .* pause for E2$/.test(line))).toHaveLength(1);
  expect(watched.keeps).toBeGreaterThan(100);
});

test("a hold that a clock at 1970 ended may be forgotten once the clock is right (seed 1405911055)", async () => {
  const failure = await failureOf(
    { kind: "noTime", at: time("05:15"), downFor: 1_000, lasts: 24 * MINUTE },
    { kind: "hold", at: time("05:36"), scope: { vehicle: "v1" }, level: { currentA: 10 }, until: 2 * MINUTE },
    { kind: "crash", at: time("05:43"), point: "at once", downFor: 1_000 },
  );
  expect(failure).toBeNull();
});

test("a hold that is open, or ended within a day, is lost in no crash", async () => {
  const failure = await failureOf(
    { kind: "hold", at: time("05:36"), scope: { vehicle: "v1" }, level: null, until: HOUR },
    { kind: "crash", at: time("05:43"), point: "at once", downFor: 1_000 },
    { kind: "crash", at: time("06:43"), point: "at once", downFor: 1_000 },
  );
  expect(failure).toBeNull();
});
