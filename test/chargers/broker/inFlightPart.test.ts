import * as fc from "fast-check";
import { expect, test } from "vitest";
import { inFlightWindow } from "../../../src/chargers/broker/inFlight.ts";

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
            window.leave();
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
  window.leave();
  expect(await second).toBe(true);
  let entered = false;
  const third = window.enter().then(() => (entered = true));
  await Promise.resolve();
  expect(entered).toBe(false);
  window.leave();
  await third;
  expect(entered).toBe(true);
});

test("a closed window refuses those that wait and those that come", async () => {
  const window = inFlightWindow(1);
  expect(await window.enter()).toBe(true);
  const waiting = window.enter();
  window.close();
  expect(await waiting).toBe(false);
  expect(await window.enter()).toBe(false);
});
