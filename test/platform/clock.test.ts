import * as fc from "fast-check";
import { expect, test } from "vitest";

import { aheadOf, BelievedClock, type ClockReading, jumpBetween } from "../../src/platform/clock.ts";
import { instant, millis } from "../../src/domain/units.ts";

const reading = (wall: number, monotonic: number): ClockReading => ({
  wall: instant(wall),
  monotonic: millis(monotonic),
});

test("a clock that runs, or is slewed, has not jumped (F23)", () => {
  expect(jumpBetween(reading(1_000, 0), reading(61_000, 60_000))).toBe(0);
  expect(jumpBetween(reading(1_000, 0), reading(62_500, 60_000))).toBe(0);
});

test("a clock that was set has jumped that far, forward or back (F20, F21)", () => {
  expect(jumpBetween(reading(1_000, 0), reading(3_661_000, 60_000))).toBe(3_600_000);
  expect(jumpBetween(reading(3_661_000, 0), reading(1_000, 60_000))).toBe(-3_720_000);
});

test("an offset to the partner's clock shows from its last answer on, at once where our clock is set", () => {
  const partner = reading(1_000, 0);
  const ahead = (wall: number) => aheadOf(partner, reading(wall, 60_000), millis(300_000));
  expect([ahead(361_000), ahead(361_001), ahead(-9e9)]).toEqual([0, 300_001, 0]);
  expect(aheadOf(null, reading(9e9, 0), millis(300_000))).toBe(0);
});

/** Wall and monotonic time as a test sets them, ms. */
function aClock(wall: number, recorded: number | null) {
  const readings = { wall, monotonic: 0 };
  let doubts = 0;
  const clock = new BelievedClock(
    () => reading(readings.wall, readings.monotonic),
    recorded === null ? null : instant(recorded),
    () => {
      doubts += 1;
    },
  );
  return {
    clock,
    /** So much time passes, and somebody sets the clock to this. */
    passes: (ms: number, wall = readings.wall + ms): number => {
      readings.monotonic += ms;
      readings.wall = wall;
      return clock.now();
    },
    doubts: () => doubts,
  };
}

test("a clock that nothing on record contradicts is believed as it is, forward jumps included (F20)", () => {
  for (const recorded of [null, 1_000_000]) {
    const { clock, passes, doubts } = aClock(1_000_000, recorded);
    expect([clock.isDoubted, passes(5_000), passes(5_000, 9e11)]).toEqual([false, 1_005_000, 9e11]);
    expect(doubts()).toBe(0);
  }
});

test("a clock behind the record at the start is carried on from the record, until it is believed (F22)", () => {
  const { clock, passes } = aClock(0, 1_000_000);
  expect([clock.isDoubted, clock.now(), passes(60_000)]).toEqual([true, 1_000_000, 1_060_000]);
  clock.believe();
  expect([clock.isDoubted, passes(1_000)]).toEqual([false, 61_000]);
});

test("a doubted clock that is set right shows the right time at once, and stays doubted until it is believed", () => {
  const { clock, passes } = aClock(0, 1_000_000);
  expect([passes(60_000, 5_000_000), clock.isDoubted]).toEqual([5_000_000, true]);
});

test("a clock that is set back while it runs is doubted once, and goes on as if it had not been (F21)", () => {
  const { clock, passes, doubts } = aClock(1_000_000, null);
  expect(passes(10_000, 1_000)).toBe(1_010_000);
  expect(passes(10_000)).toBe(1_020_000);
  expect([clock.isDoubted, doubts()]).toEqual([true, 1]);
  clock.believe();
  expect([passes(1_000), doubts()]).toEqual([12_000, 1]);
});

test("a clock that is slewed is not doubted (F23)", () => {
  const { clock, passes } = aClock(1_000_000, null);
  expect([passes(1_000, 999_500), clock.isDoubted]).toEqual([999_500, false]);
});

test("however it is set, time never goes back by more than a slew before somebody believes it (S5)", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(100_000), fc.nat(5_000_000))), (steps) => {
      const { passes } = aClock(1_000_000, 2_000_000);
      let last = 2_000_000;
      for (const [ms, wall] of steps) {
        const now = passes(ms, wall);
        expect(now).toBeGreaterThanOrEqual(last - 2_000);
        last = now;
      }
    }),
  );
});

test("a clock that is carried on shows whole milliseconds, and loses none of the parts", () => {
  const { passes } = aClock(0, 1_000_000);
  let now = 0;
  for (let n = 0; n < 1000; n += 1) now = passes(0.75);
  expect(now).toBe(1_000_750);
});
