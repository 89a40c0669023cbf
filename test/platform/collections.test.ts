import * as fc from "fast-check";
import { expect, test } from "vitest";
import { DueQueue, RunningSum } from "../../src/platform/collections.ts";
import { instant } from "../../src/domain/units.ts";

test("an empty queue has nothing next and nothing due", () => {
  const queue = new DueQueue<string>();
  expect([queue.next(), queue.size, [...queue.due(instant(1e15))]]).toEqual([undefined, 0, []]);
});

test("due entries come out in the order of their moments, each key once", () => {
  const queue = new DueQueue<string>();
  for (const [moment, key] of [
    [5, "e"],
    [1, "a"],
    [3, "c"],
    [2, "a"],
    [9, "z"],
  ] as const)
    queue.push(instant(moment), key);
  expect([...queue.due(instant(5))]).toEqual(["a", "c", "e"]);
  expect([queue.next(), queue.size]).toEqual([9, 1]);
});

test("a cleared queue is as good as new", () => {
  const queue = new DueQueue<string>();
  queue.push(instant(1), "a");
  queue.push(instant(2), "b");
  queue.clear();
  expect([queue.next(), queue.size]).toEqual([undefined, 0]);
  queue.push(instant(3), "c");
  expect([...queue.due(instant(5))]).toEqual(["c"]);
});

test("the queue always equals a sorted list, whatever is pushed and popped", () => {
  const step = fc.oneof(
    fc.record({ push: fc.nat(50), key: fc.constantFrom("a", "b", "c", "d", "e") }),
    fc.record({ due: fc.nat(60) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const queue = new DueQueue<string>();
      let model: { at: number; key: string }[] = [];
      for (const step of steps) {
        if ("push" in step) {
          queue.push(instant(step.push), step.key);
          model.push({ at: step.push, key: step.key });
        } else {
          const due = model.filter(({ at }) => at <= step.due).map(({ key }) => key);
          model = model.filter(({ at }) => at > step.due);
          expect(queue.due(instant(step.due))).toEqual(new Set(due));
        }
        expect(queue.size).toBe(model.length);
        expect(queue.next()).toBe(model.map(({ at }) => at).toSorted((a, b) => a - b)[0]);
      }
    }),
  );
});

test("a running sum is the sum of the first values, after any changes", () => {
  const change = fc.record({ at: fc.nat(50), by: fc.integer({ min: -50, max: 50 }) });
  fc.assert(
    fc.property(fc.array(fc.nat(1000)), fc.array(change), (values, changes) => {
      const sums = new RunningSum();
      const plain = [...values];
      expect(values.map((value) => sums.append(value))).toEqual([...values.keys()]);
      for (const { at, by } of changes) {
        if (at >= plain.length) continue;
        plain[at] = (plain[at] ?? 0) + by;
        sums.add(at, by);
      }
      for (let count = 0; count <= plain.length; count += 1)
        expect(sums.before(count)).toBe(plain.slice(0, count).reduce((sum, value) => sum + value, 0));
    }),
  );
});
