import { array, assert, integer, option, property, tuple } from "fast-check";
import { expect, test } from "vitest";

import { deliver } from "../../src/departures/forecast.ts";
import { paced, type Pacing } from "../../src/departures/pacing.ts";
import { after, eventId, instant, minutes } from "../../src/domain/units.ts";

const NOW = instant(Date.parse("2026-11-23T01:00:00Z"));
const later = (mins: number) => after(NOW, minutes(mins));
const FREE: Pacing = {
  presentW: null,
  deferredUntil: null,
  changedAt: null,
  minInterval: minutes(0),
  minOff: minutes(0),
  ramp: minutes(0),
};
const stretch = (from: number, until: number, allowedW: number, event: string | null = null) => ({
  from: later(from),
  until: later(until),
  allowedW,
  withoutEventsW: 11_000,
  event: event === null ? null : eventId(event),
  hold: null,
});
/** "0-30 5000" for each stretch, in minutes. */
const found = (pacing: Partial<Pacing>, ...stretches: readonly ReturnType<typeof stretch>[]) =>
  paced(stretches, { ...FREE, ...pacing }).map(
    ({ from, until, allowedW }) => `${(from - NOW) / 60_000}-${(until - NOW) / 60_000} ${allowedW}`,
  );

test("without a pace the plan stays as it is", () => {
  const plan = [stretch(0, 30, 5_000, "EV-1"), stretch(30, 60, 11_000)];
  expect(paced(plan, FREE)).toEqual(plan);
});

test("an increase waits for the others in the ramp, and a reduction for nothing", () => {
  const plan = [stretch(0, 30, 5_000, "EV-1"), stretch(30, 90, 11_000), stretch(90, 99, 4_000, "EV-2")];
  expect(found({ ramp: minutes(10) }, ...plan)).toEqual([
    "0-30 5000",
    "30-40 5000",
    "40-90 11000",
    "90-99 4000",
  ]);
});

test("an increase that has waited through one part of the plan goes on waiting in the next", () => {
  const plan = [stretch(0, 30, 5_000, "EV-1"), stretch(30, 35, 9_000, "EV-2"), stretch(35, 60, 11_000)];
  expect(found({ ramp: minutes(10) }, ...plan)).toEqual([
    "0-30 5000",
    "30-35 5000",
    "35-40 5000",
    "40-60 11000",
  ]);
});

test("an increase that waits now comes when it is decided to", () => {
  const waiting = { presentW: 5_000, deferredUntil: later(7) };
  expect(found(waiting, stretch(0, 60, 11_000))).toEqual(["0-7 5000", "7-60 11000"]);
});

test("an increase within an event waits for the interval since the last change, and one at its end does not", () => {
  const changed = { presentW: 5_000, changedAt: later(-1), minInterval: minutes(5) };
  expect(found(changed, stretch(0, 60, 11_000))).toEqual(["0-4 5000", "4-60 11000"]);
  const plan = [stretch(0, 2, 5_000, "EV-1"), stretch(2, 60, 11_000)];
  expect(found(changed, ...plan)).toEqual(["0-2 5000", "2-60 11000"]);
});

test("a pause lasts as long as the shortest pause, also beyond its event", () => {
  const plan = [stretch(0, 2, 0, "EV-1"), stretch(2, 60, 11_000)];
  expect(found({ minOff: minutes(10), presentW: 11_000 }, ...plan)).toEqual([
    "0-2 0",
    "2-10 0",
    "10-60 11000",
  ]);
});

const anyPlan = array(
  tuple(integer({ min: 1, max: 90 }), integer({ min: 0, max: 11_000 }), option(integer({ min: 1, max: 3 }))),
  { maxLength: 10 },
).map((parts) => {
  let at = 0;
  return parts.map(([span, watts, event]) => {
    at += span;
    return stretch(at - span, at, watts, event === null ? null : `EV-${event}`);
  });
});

test("a pace never gives more than the plan, and leaves no gap", () => {
  assert(
    property(anyPlan, integer({ min: 0, max: 40 }), integer({ min: 0, max: 40 }), (plan, ramp, rest) => {
      const pacing = { ...FREE, presentW: 4_000, ramp: minutes(ramp), minInterval: minutes(rest) };
      const slower = paced(plan, { ...pacing, changedAt: later(-3) });
      expect(slower.map(({ until }) => until).at(-1)).toBe(plan.map(({ until }) => until).at(-1));
      for (const [index, { from }] of slower.entries())
        if (index > 0) expect(from).toBe(slower[index - 1]?.until);
      const wh = (all: typeof plan | typeof slower): number =>
        deliver(all, ({ allowedW }) => allowedW, Infinity, later(10_000)).wh;
      expect(wh(slower)).toBeLessThanOrEqual(wh(plan) + 0.01);
    }),
  );
});
