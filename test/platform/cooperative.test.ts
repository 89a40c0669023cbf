import { expect, test } from "vitest";

import {
  type ResumableTask,
  runCooperatively,
  runToEnd,
  runUrgently,
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
