import * as fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { inFlightWindow, PublishQuota } from "../../../src/chargers/broker/inFlight.ts";

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

test("connections of one process share a quota: commands go first, and each place is handed on", async () => {
  const quota = new PublishQuota(2);
  const order: string[] = [];
  const leaves: (() => void)[] = [];
  const publish = async (name: string, isCommand: boolean): Promise<void> => {
    const leave = await quota.enter(isCommand);
    order.push(name);
    leaves.push(leave);
  };
  const all = ["state 1", "state 2", "state 3", "state 4"].map((name) => publish(name, false));
  all.push(publish("command 1", true), publish("command 2", true));
  await Promise.all(all.slice(0, 2));
  expect(order).toEqual(["state 1", "state 2"]);
  for (let left = 0; left < 4; left += 1) {
    const leave = leaves.shift();
    leave?.();
    // A second call gives no second place.
    leave?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toHaveLength(3 + left);
  }
  await Promise.all(all);
  expect(order.slice(2)).toEqual(["command 1", "command 2", "state 3", "state 4"]);
});

test("a publish that is not acknowledged for some time counts no more for the quota", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const quota = new PublishQuota(1, 2_000);
  const hung = await quota.enter(true);
  const next = Promise.resolve(quota.enter(true));
  let isNext = false;
  void next.then(() => (isNext = true));
  await vi.advanceTimersByTimeAsync(1_999);
  expect(isNext).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isNext).toBe(true);
  // Its late acknowledgement frees no place of another.
  hung();
  const third = quota.enter(true);
  expect(third).toBeInstanceOf(Promise);
  (await next)();
  expect(await third).toBeTypeOf("function");
});
