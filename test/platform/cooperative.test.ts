import { expect, onTestFinished, test, vi } from "vitest";

import {
  type ResumableTask,
  runCooperatively,
  runToEnd,
  runUrgently,
  SharedPlaces,
  SharedRoom,
} from "../../src/platform/cooperative.ts";

test("steps taken at once are all taken, in order", () => {
  const taken: number[] = [];
  const result = runToEnd(
    (function* () {
      for (let step = 1; step <= 3; step += 1) {
        taken.push(step);
        yield;
      }
      return "done";
    })(),
  );
  expect([result, taken]).toEqual(["done", [1, 2, 3]]);
});

test("several long tasks of one program hold up the event loop no longer than one", async () => {
  let elapsed = 0;
  const monotonic = (): number => elapsed;
  const turns: number[] = [];
  /** Each step takes longer than a slice, so each begins a turn of its own. */
  const task = function* (): ResumableTask<void> {
    for (let step = 0; step < 4; step += 1) {
      elapsed += 11;
      yield;
    }
  };
  const tasks = [1, 2, 3].map(() => runCooperatively(task(), monotonic));
  const isDone = Promise.all(tasks).then(() => true);
  for (let turn = 0, done = false; !done && turn < 100; turn += 1) {
    const before = elapsed;
    done = await Promise.race([isDone, new Promise<false>((resolve) => setImmediate(() => resolve(false)))]);
    turns.push(elapsed - before);
  }
  await isDone;
  expect(elapsed).toBe(3 * 4 * 11);
  expect(Math.max(...turns)).toBe(11);
});

test("urgent work gets a slice in every turn, while other tasks wait for theirs", async () => {
  let elapsed = 0;
  const monotonic = (): number => elapsed;
  const order: string[] = [];
  const task = function* (name: string): ResumableTask<void> {
    for (let step = 0; step < 3; step += 1) {
      elapsed += 11;
      order.push(name);
      yield;
    }
  };
  await Promise.all([
    ...["alarms", "departures"].map((name) => runCooperatively(task(name), monotonic)),
    runUrgently(task("ingest"), monotonic),
  ]);
  expect(order.lastIndexOf("ingest")).toBeLessThan(order.lastIndexOf("departures") - 1);
});

test("sites of one process share places: urgent work goes first, and each place is handed on", async () => {
  const places = new SharedPlaces(2, 2_000);
  const order: string[] = [];
  const leaves: (() => void)[] = [];
  const work = async (name: string, isUrgent: boolean): Promise<void> => {
    const leave = await places.enter(isUrgent);
    order.push(name);
    leaves.push(leave);
  };
  const all = ["state 1", "state 2", "state 3", "state 4"].map((name) => work(name, false));
  all.push(work("command 1", true), work("command 2", true));
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

test("work that hangs gives up its place after some time", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const places = new SharedPlaces(1, 2_000);
  const hung = await places.enter(true);
  const next = Promise.resolve(places.enter(true));
  let isNext = false;
  void next.then(() => (isNext = true));
  await vi.advanceTimersByTimeAsync(1_999);
  expect(isNext).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isNext).toBe(true);
  // Its late end frees no place of another.
  hung();
  const third = places.enter(true);
  expect(third).toBeInstanceOf(Promise);
  (await next)();
  expect(await third).toBeTypeOf("function");
});

test("room in memory that was given back is not taken again by work that was still under way", () => {
  const room = new SharedRoom(5);
  const [stopped, other] = [room.part(), room.part()];
  stopped.take(4);
  stopped[Symbol.dispose]();
  stopped.take(5);
  expect(other.free()).toBe(5);
});
