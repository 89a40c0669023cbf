import { expect, test } from "vitest";

import { instant } from "../../src/domain/units.ts";
import { VirtualClock } from "./virtualClock.ts";

const never = (): boolean => false;

test("timers ring in the order of their moments, and of equals as they were set", async () => {
  using clock = new VirtualClock(instant(0));
  const rung: string[] = [];
  for (const [name, delay] of [["c", 30] as const, ["a", 10] as const, ["b", 10] as const])
    setTimeout(() => rung.push(`${name} ${clock.monotonic()}`), delay);
  const every = setInterval(() => rung.push(`tick ${clock.monotonic()}`), 20);
  clearTimeout(setTimeout(() => rung.push("never"), 15));
  await clock.advanceTo(45, never);
  clearInterval(every);
  await clock.advanceTo(100, never);
  expect(rung).toEqual(["a 10", "b 10", "tick 20", "c 30", "tick 40"]);
});

test("steps that need no time happen before the next timer fires", async () => {
  using clock = new VirtualClock(instant(0));
  const seen: string[] = [];
  setTimeout(() => {
    setImmediate(() => {
      seen.push("immediate");
      void Promise.resolve().then(() => seen.push("its promise"));
    });
  }, 1);
  setTimeout(() => seen.push("next"), 2);
  await clock.advanceTo(2, never);
  expect(seen).toEqual(["immediate", "its promise", "next"]);
});

test("the gateway's clock can be set while no other time jumps", async () => {
  using clock = new VirtualClock(instant(1000));
  await clock.advanceTo(50, never);
  clock.aheadBy = -500;
  expect([clock.gateway(), clock.truth(), clock.monotonic()]).toEqual([550, 1050, 50]);
});

test("a process that stood still finds its timers late", async () => {
  using clock = new VirtualClock(instant(0));
  let rung = 0;
  setTimeout(() => clock.stall(500), 10);
  setTimeout(() => (rung = clock.monotonic()), 20);
  await clock.advanceTo(1000, never);
  expect(rung).toBe(510);
});

test("a delay that no 32-bit number holds fires at once, as it does in Node (F26)", async () => {
  using clock = new VirtualClock(instant(0));
  let rung = 0;
  setTimeout(() => (rung = clock.monotonic()), 2 ** 31);
  await clock.advanceTo(10, never);
  expect(rung).toBe(1);
});

test("a machine that sleeps finds another time when it wakes; its timers and its other clock stood still", async () => {
  using clock = new VirtualClock(instant(1_000));
  const rung: number[] = [];
  setTimeout(() => rung.push(clock.gateway()), 50);
  await clock.advanceTo(20, never);
  clock.sleep(500);
  expect([clock.gateway(), clock.day(), clock.monotonic()]).toEqual([1_520, 520, 20]);
  await clock.advanceTo(549, never);
  expect(rung).toEqual([]);
  await clock.advanceTo(550, never);
  expect(rung).toEqual([1_550]);
});

test("a timer that is refreshed rings so much later, also after it has rung", async () => {
  using clock = new VirtualClock(instant(0));
  const rung: number[] = [];
  const timer = setTimeout(() => rung.push(clock.monotonic()), 10);
  await clock.advanceTo(5, never);
  timer.refresh();
  await clock.advanceTo(20, never);
  timer.refresh();
  await clock.advanceTo(50, never);
  expect(rung).toEqual([15, 30]);
});
