import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  byCharger,
  gapsIn,
  holesIn,
  inOrder,
  integral,
  last,
  lengthOf,
  mean,
  merged,
  peak,
  stepsOf,
  within,
} from "../../src/reporting/series.ts";
import { chargerId, iso, minutes, vehicleId, type Window } from "../../src/domain/units.ts";
import { at } from "../support/anEvent.ts";
import { from, measured } from "../support/aReading.ts";

const words = ({ from: start, until }: Window): string =>
  `${iso(start).slice(11, 16)}-${iso(until).slice(11, 16)}`;
const step = (start: string, end: string, value: number) => ({ ...from(start, end), value });
const power = (value: number, when: string, changes = {}) => measured("power", value, at(when), changes);

test("late readings are sorted in, and a redelivered one counts once", () => {
  const readings = [power(3, "12:02"), power(1, "12:00"), power(2, "12:01"), power(2, "12:01")];
  expect(inOrder(readings).map(({ value }) => value)).toEqual([1, 2, 3]);
});

test("the last received of two readings of the same time counts", () => {
  const [first, second] = [power(1, "12:00"), power(2, "12:00", { receivedAt: at("12:05") })];
  expect(inOrder([first, second])).toEqual([second]);
  expect(inOrder([second, first])).toEqual([second]);
});

test("the order and repetition of readings do not change the series", () => {
  const some = fc.array(
    fc.record({
      minute: fc.integer({ min: 0, max: 20 }),
      value: fc.integer(),
      came: fc.integer({ min: 0, max: 5 }),
    }),
  );
  fc.assert(
    fc.property(some, fc.gen(), (entries, shuffle) => {
      const readings = entries.map(({ minute, value, came }, index) =>
        power(value, `12:${String(minute).padStart(2, "0")}`, {
          receivedAt: at(`13:0${came}`),
          charger: chargerId(`bay-${index % 3}`),
        }),
      );
      const distinct = inOrder(readings);
      const mixed = shuffle(fc.shuffledSubarray, [...distinct, ...distinct], {
        minLength: distinct.length * 2,
      });
      expect(new Set(inOrder(mixed))).toEqual(new Set(distinct));
    }),
  );
});

test("readings are kept apart by charger", () => {
  const elsewhere = power(2, "12:01", { charger: chargerId("bay-02") });
  const lines = byCharger([power(1, "12:00"), elsewhere, power(3, "12:02")]);
  expect(
    [...lines].map(([charger, line]) => `${charger}: ${line.map(({ value }) => value).join(" ")}`),
  ).toEqual(["bay-01: 1 3", "bay-02: 2"]);
});

test("a reading holds until the next one on its charger, at most `maxGap`, and only for its vehicle", () => {
  const line = [
    power(1, "12:00"),
    power(2, "12:03", { vehicle: null }),
    power(3, "12:04"),
    power(4, "12:20"),
  ];
  const steps = stepsOf(line, vehicleId("veh-214"), minutes(5), minutes(1));
  expect(steps.map((each) => `${words(each)} ${each.value}`)).toEqual([
    "12:00-12:03 1",
    "12:04-12:09 3",
    "12:20-12:21 4",
  ]);
});

test("the newer reading holds where two chargers overlap", () => {
  const steps = merged([step("12:05", "12:10", 2), step("12:00", "12:06", 1), step("12:05", "12:07", 3)]);
  expect(steps.map((each) => `${words(each)} ${each.value}`)).toEqual(["12:00-12:05 1", "12:05-12:07 3"]);
});

const STEPS = [step("12:00", "12:10", 10), step("12:10", "12:20", 40), step("12:30", "12:40", 20)];

test("means are weighted by covered time; peaks and last values are measured values", () => {
  const half = within(STEPS, from("12:05", "12:20"));
  expect(half.map(words)).toEqual(["12:05-12:10", "12:10-12:20"]);
  expect([mean(half), peak(half), last(half)]).toEqual([30, 40, 40]);
  expect([mean(STEPS), peak(STEPS), last(STEPS)]).toEqual([70 / 3, 40, 20]);
  expect([mean([]), peak([]), last([])]).toEqual([null, null, null]);
  expect([integral(half), lengthOf(half)]).toEqual([minutes(450), minutes(15)]);
  expect(within(STEPS, from("12:20", "12:30"))).toEqual([]);
});

test("the rest of a window besides its steps are gaps", () => {
  const window = from("12:05", "12:45");
  expect(holesIn(within(STEPS, window), window).map(words)).toEqual(["12:20-12:30", "12:40-12:45"]);
  expect(holesIn([], window).map(words)).toEqual(["12:05-12:45"]);
});

const gaps = (...times: readonly string[]): readonly string[] =>
  gapsIn(times.map(at), from("12:00", "13:00"), minutes(20)).map(words);

test("a gap is a silence longer than allowed, within the window or over its edges", () => {
  expect(gaps("11:59", "12:15", "12:35", "12:50", "13:05")).toEqual([]);
  expect(gaps("11:30", "12:15", "12:50", "13:20")).toEqual(["12:00-12:15", "12:15-12:50", "12:50-13:00"]);
  expect(gaps("12:15", "12:30", "12:45")).toEqual([]);
  expect(gaps("12:30")).toEqual(["12:00-12:30", "12:30-13:00"]);
  expect(gaps()).toEqual(["12:00-13:00"]);
});
