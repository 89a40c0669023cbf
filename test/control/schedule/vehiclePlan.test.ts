import { expect, test } from "vitest";

import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { VehiclePlan } from "../../../src/control/schedule/vehiclePlan.ts";
import { instant } from "../../../src/domain/units.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { aDispatch } from "../../support/anEvent.ts";

const dispatch = (id: string, from: number, until: number, priority = 1): Dispatch =>
  aDispatch({ from: instant(from), until: instant(until) }, { id, priority });
const plan = (...dispatches: readonly Dispatch[]): VehiclePlan => {
  const made = new VehiclePlan(settingsWith());
  for (const one of dispatches) made.add(one, instant(0));
  return made;
};
const rankedAt = (made: VehiclePlan, now: number) => {
  const holding = made.ranked(instant(now));
  return [holding.count, [...holding.ranked(690)].map(({ event }) => event.id)];
};

test("between two steps an ended dispatch no longer wins, and a begun one does", () => {
  const made = plan(dispatch("EV-1", 0, 10, 1), dispatch("EV-2", 0, 20, 2), dispatch("EV-3", 15, 30, 0));
  expect(rankedAt(made, 5)).toEqual([2, ["EV-1", "EV-2"]]);
  expect(rankedAt(made, 10)).toEqual([1, ["EV-2"]]);
  expect(rankedAt(made, 15)).toEqual([2, ["EV-3", "EV-2"]]);
  expect(made.allInForce(instant(15)).map(({ event }) => event.id)).toEqual(["EV-3", "EV-2"]);
  expect(made.dropEnded(instant(20)).map(({ event }) => event.id)).toEqual(["EV-1", "EV-2"]);
  expect([made.size, rankedAt(made, 20)]).toEqual([1, [1, ["EV-3"]]]);
});

test("F21: a dispatch that began by a clock that was ahead does not hold before its start once that clock is set back", () => {
  const made = plan(dispatch("EV-1", 0, 30, 2), dispatch("EV-2", 10, 20, 1));
  expect(rankedAt(made, 15)).toEqual([2, ["EV-2", "EV-1"]]);
  expect(rankedAt(made, 5)).toEqual([1, ["EV-1"]]);
  expect(made.allInForce(instant(5)).map(({ event }) => event.id)).toEqual(["EV-1"]);
  expect(rankedAt(made, 10)).toEqual([2, ["EV-2", "EV-1"]]);
});

test("a started dispatch is returned once", () => {
  const made = plan(dispatch("EV-1", 5, 10));
  expect([made.takeStarted(instant(4)), made.takeStarted(instant(5)).length]).toEqual([[], 1]);
  expect(made.takeStarted(instant(6))).toEqual([]);
});

test("the next start or end is found among future and begun dispatches", () => {
  const made = plan(dispatch("EV-1", 0, 10), dispatch("EV-2", 5, 7), dispatch("EV-3", 20, 30));
  const next = (at: number) => made.next(instant(at));
  expect([next(0), next(5), next(7), next(10), next(20), next(30)]).toEqual([5, 7, 10, 20, 30, Infinity]);
  const passed = plan(dispatch("EV-1", 5, 7), dispatch("EV-2", 5, 9));
  expect([passed.next(instant(8)), passed.next(instant(9))]).toEqual([9, Infinity]);
});

test("a dispatch is offered for a mark until it is marked or gone", () => {
  const [one, two, gone] = [dispatch("EV-1", 0, 10), dispatch("EV-2", 3, 10), dispatch("EV-3", 0, 10)];
  const made = plan(one, two, gone);
  expect([made.remove(gone), made.remove(gone)]).toEqual([true, false]);
  const asked: string[] = [];
  const mark = (now: number, answer: boolean) => {
    made.mark("evaluated", instant(now), ({ event }) => {
      asked.push(event.id);
      return answer;
    });
  };
  mark(1, false);
  mark(1, true);
  mark(1, true);
  mark(3, true);
  mark(3, true);
  expect(asked).toEqual(["EV-1", "EV-1", "EV-2"]);
  made.mark("unplugged", instant(10), () => true);
  made.mark("unplugged", instant(3), ({ event }) => asked.push(event.id) > 0);
  expect(asked.slice(3).toSorted()).toEqual(["EV-1", "EV-2"]);
});

test("a dispatch whose mark was removed is offered once more", () => {
  const made = plan(dispatch("EV-1", 0, 10));
  let asked = 0;
  const mark = () => made.mark("unplugged", instant(1), () => (asked += 1) > 0);
  mark();
  made.unmark("unplugged");
  mark();
  mark();
  expect(asked).toBe(2);
});

test("unmarked dispatches do not pile up once they have ended", () => {
  const made = plan();
  const asked: string[] = [];
  for (let minute = 0; minute < 100; minute += 1) {
    made.dropEnded(instant(minute));
    made.add(dispatch(`EV-${minute}`, minute, minute + 1), instant(minute));
  }
  made.mark("unplugged", instant(99), ({ event }) => asked.push(event.id) > 0);
  expect(asked).toEqual(["EV-99"]);
});

test.for([
  ["that end together", 0],
  ["that begin and end together", 5],
] as const)("one of a thousand dispatches %s is removed without a look at most of the others", ([, from]) => {
  let looks = 0;
  const counted = Array.from(
    { length: 1000 },
    (_, index): Dispatch =>
      new Proxy(dispatch(`EV-${index}`, from, 10, index), {
        get: (one, field) => ((looks += 1), Reflect.get(one, field) as unknown),
      }),
  );
  const made = plan(...counted);
  looks = 0;
  for (const one of counted) expect(made.remove(one)).toBe(true);
  expect([made.size, looks < 1000 * 300]).toEqual([0, true]);
});
