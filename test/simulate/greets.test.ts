import { expect, test } from "vitest";

import { aDay, asked, time } from "./aDay.ts";
import type { Action } from "./plan.ts";
import { playDay } from "./playDay.ts";
import { greetedAnew } from "./plants.ts";

const EVENT = asked("E1", "01:00", "02:00");
const greets = (every: number): Action => ({
  kind: "greets",
  at: time("00:30"),
  charger: "bay-01",
  every,
  lasts: time("02:00"),
});

/** A vehicle is plugged in throughout; until three o'clock. */
const played = (actions: readonly Action[], plant = {}) =>
  playDay({ ...aDay([EVENT, ...actions]), ends: time("03:00") }, plant);

test.each([5_000, 17_000, 30_000])(
  "a charger that repeats each %i ms that it is online gets the same messages as one that does not",
  async (every) => {
    const quiet = await played([]);
    const greeting = await played([greets(every)]);
    expect(quiet.told.length).toBeGreaterThan(60);
    expect(greeting).toMatchObject({ failure: null, told: quiet.told });
    const mistaken = await played([greets(every)], { plant: () => greetedAnew(1) });
    expect(mistaken.failure?.invariant).toMatch(/^an undisturbed charger/);
  },
);

/** Three tries after 30 s, twice and four times as long, then the verdict; telemetry comes once a minute each time. */
const VERDICT = 15 * 30_000 + 5 * 60_000;

test.each([5_000, 30_000])(
  "a charger that ignores its setpoint and repeats each %i ms that it is online is an alarm within the time of the tries",
  async (every) => {
    const deaf: Action = { kind: "deaf", at: time("00:50"), charger: "bay-01", lasts: time("01:10") };
    const { alarms, failure } = await played([greets(every), deaf]);
    expect(failure).toBeNull();
    expect(alarms).toHaveLength(1);
    const at = time(alarms[0]?.slice(0, 8) ?? "");
    expect(at - time("01:00")).toBeGreaterThan(0);
    expect(at - time("01:00")).toBeLessThan(VERDICT);
    const mistaken = await played([greets(every), deaf], { plant: () => greetedAnew(1) });
    expect(mistaken.alarms).toEqual([]);
  },
);
