import { expect, test } from "vitest";

import { type ClockReading, jumpBetween } from "../../src/core/clock.ts";
import { instant, millis } from "../../src/core/units.ts";

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
