import { expect, test } from "vitest";

import { WakeTimes } from "../../../src/control/schedule/agenda.ts";
import { type ChargerId, chargerId, instant } from "../../../src/domain/units.ts";
import { at } from "../../support/anEvent.ts";

const bay = chargerId("bay-01");

test("the earlier of two requests for an evaluation counts, and a later one after it is a new request", () => {
  const wakes = new WakeTimes<ChargerId>();
  expect(wakes.next()).toBeUndefined();
  wakes.wake(bay, at("05:20"));
  wakes.wake(bay, at("05:30"));
  wakes.wake(bay, at("05:10"));
  expect(wakes.next()).toBe(at("05:10"));
  expect([wakes.woken(at("05:09")).size, ...wakes.woken(at("05:10"))]).toEqual([0, bay]);
  expect(wakes.next()).toBe(at("05:20"));
});

test("a replaced request wakes no charger, unless it was made anew", () => {
  const wakes = new WakeTimes<ChargerId>();
  wakes.wake(bay, at("05:20"));
  wakes.wake(bay, at("05:10"));
  expect([...wakes.woken(at("05:10"))]).toEqual([bay]);
  wakes.wake(bay, at("05:30"));
  expect([...wakes.woken(at("05:20"))]).toEqual([]);
  expect([...wakes.woken(at("05:30"))]).toEqual([bay]);
});

test("requests that earlier ones replaced do not pile up", () => {
  const wakes = new WakeTimes<ChargerId>();
  for (let moment = 5_000; moment > 0; moment -= 1) wakes.wake(bay, instant(moment));
  expect([...wakes.woken(instant(1))]).toEqual([bay]);
  let looks = 0;
  for (let next = wakes.next(); next !== undefined; next = wakes.next()) {
    looks += 1;
    expect(wakes.woken(next).size).toBe(0);
  }
  expect(looks).toBeLessThan(1_100);
});
