import * as fc from "fast-check";
import { expect, test } from "vitest";

import { FloodGate, inFlightWindow } from "../../../src/chargers/broker/flowControl.ts";
import { instant } from "../../../src/domain/units.ts";

test("F82: the window is never exceeded, and all enter in order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 0, max: 60 }),
      async (size, crowd) => {
        const window = inFlightWindow(size);
        const order: number[] = [];
        let inside = 0;
        let most = 0;
        await Promise.all(
          Array.from({ length: crowd }, async (_, place) => {
            await window.enter();
            inside += 1;
            most = Math.max(most, inside);
            order.push(place);
            await Promise.resolve();
            inside -= 1;
            window.leave(1);
          }),
        );
        expect(most).toBeLessThanOrEqual(size);
        expect(order).toEqual(Array.from({ length: crowd }, (_, place) => place));
      },
    ),
  );
});

test("a slot that is handed over stays taken: a later publish waits", async () => {
  const window = inFlightWindow(1);
  expect(await window.enter()).toBe(true);
  const second = window.enter();
  window.leave(1);
  expect(await second).toBe(true);
  let entered = false;
  const third = window.enter().then(() => (entered = true));
  await Promise.resolve();
  expect(entered).toBe(false);
  window.leave(1);
  await third;
  expect(entered).toBe(true);
});

test("all that wait enter as soon as the window is narrow no longer", async () => {
  let isNarrow = true;
  const window = inFlightWindow(100, () => isNarrow);
  await window.enter();
  let entered = 0;
  for (const _ of [1, 2, 3]) void window.enter().then(() => (entered += 1));
  window.leave(1);
  await Promise.resolve();
  expect([window.width, entered]).toEqual([1, 1]);
  isNarrow = false;
  window.leave(1);
  await Promise.resolve();
  expect([window.width, entered]).toEqual([22, 3]);
});

test("the window widens while acknowledgements are quick, and halves once when they slow down", async () => {
  const window = inFlightWindow(100);
  expect(window.width).toBe(20);
  const enter = async (count: number): Promise<void> => {
    for (let inside = 0; inside < count; inside += 1) await window.enter();
  };
  const leave = (count: number, tookMs: number): void => {
    for (let outside = 0; outside < count; outside += 1) window.leave(tookMs);
  };
  await enter(20);
  leave(20, 5);
  expect(window.width).toBe(40);
  await enter(40);
  leave(40, 5);
  await enter(80);
  leave(80, 5);
  expect(window.width).toBe(100);
  await enter(100);
  leave(100, 1_000);
  expect(window.width).toBe(50);
  await enter(50);
  leave(50, 1_000);
  await enter(25);
  leave(25, 1_000);
  expect(window.width).toBe(20);
});

test("a broker that allows few publishes in flight gets as few, however slow it is", async () => {
  const window = inFlightWindow(2);
  await window.enter();
  window.leave(1);
  await window.enter();
  window.leave(1_000);
  expect(window.width).toBe(2);
});

test("a closed window refuses those that wait and those that come", async () => {
  const window = inFlightWindow(1);
  expect(await window.enter()).toBe(true);
  const waiting = window.enter();
  window.close();
  expect(await waiting).toBe(false);
  expect(await window.enter()).toBe(false);
});

const through = (count: number, gate: FloodGate, now: number): number =>
  Array.from({ length: count }, () => gate.admits(instant(now))).filter(Boolean).length;

test("F95: a flood passes at 50 messages a second, after the burst of a subscription", () => {
  let now = 0;
  const gate = new FloodGate(instant(now));
  expect(through(1000, gate, now)).toBe(200);
  now += 1000;
  expect(through(1000, gate, now)).toBe(50);
});

test("a charger that publishes 40 messages a second is never limited", () => {
  let now = 0;
  const gate = new FloodGate(instant(now));
  for (let second = 0; second < 600; second += 1) {
    expect(through(40, gate, now)).toBe(40);
    now += 1000;
  }
});

test("a clock that is set back lets no extra message through", () => {
  let now = 1_000_000;
  const gate = new FloodGate(instant(now));
  through(200, gate, now);
  now = 0;
  expect(through(10, gate, now)).toBe(0);
  now = 1000;
  expect(through(100, gate, now)).toBe(50);
});
