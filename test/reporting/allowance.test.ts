import { expect, test } from "vitest";

import { Allowance } from "../../src/reporting/thinning.ts";
import { after, type Instant, millis } from "../../src/domain/units.ts";
import { at } from "../support/anEvent.ts";

const NOON = at("12:00");
const MINUTE = 60_000;
const later = (ms: number): Instant => after(NOON, millis(ms));

/** How many of these messages are taken: of when, and come when, ms after noon. */
const taken = (messages: readonly (readonly [at: number, now: number])[], allowance = new Allowance()) =>
  messages.filter(([at, now]) => allowance.takes(later(at), later(now))).length;

const counted = (length: number) => Array.from({ length }, (_, n) => n);

test("F95: live messages are stored up to a cap per minute", () => {
  const live = counted(1800).map((n) => [n * 100, n * 100] as const);
  expect(taken(live)).toBe(360);
});

test("a buffered day is stored at once, with live messages meanwhile", () => {
  const buffer = counted(8640).map((n) => [n * 10_000 - 1440 * MINUTE, n * 5] as const);
  expect(taken(buffer)).toBe(8640);
  const both = buffer.flatMap((old) => [old, [old[1], old[1]] as const]);
  expect(taken(both)).toBe(8640 + 120);
});

test("a charger with a random clock does not fill the disk", () => {
  const wild = (from: number, length: number) =>
    counted(length).map((n) => [-(from + n) * MINUTE, (n * MINUTE) / 1000] as const);
  const allowance = new Allowance();
  const first = taken(wild(0, 20_000), allowance);
  expect(first).toBeGreaterThan(12_000);
  expect(first).toBeLessThan(12_500);
  const next = counted(6000).map((n) => [-(30_000 + n) * MINUTE, 20 * MINUTE + n * 10] as const);
  expect(taken(next, allowance)).toBeLessThan(130);
});

test("a clock that moves back neither raises nor lowers the allowance", () => {
  const allowance = new Allowance();
  const hour = 60 * MINUTE;
  expect(
    taken(
      [
        [0, 0],
        [-hour, -hour],
        [-hour + 1000, -hour + 1000],
      ],
      allowance,
    ),
  ).toBe(3);
});
