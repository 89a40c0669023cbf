import { array, assert, integer, property, record } from "fast-check";
import { expect, test } from "vitest";

import { moveOf } from "../../../src/daemon/fleet/loops.ts";

const process = (name: string, led: number, most = 10_000, room = 1_000) => ({
  process: name,
  led,
  most,
  room,
});

test("the first process takes all sites, the second is given half of them in steps", () => {
  expect(moveOf({ sites: 100, processes: [process("a", 0)] }, "a")).toEqual({ take: 100, give: 0 });
  const two = { sites: 100, processes: [process("a", 100), process("b", 0)] };
  expect(moveOf(two, "a")).toEqual({ take: 0, give: 10 });
  expect(moveOf(two, "b")).toEqual({ take: 50, give: 0 });
});

test("nothing moves while every process has its share, also where the shares differ by one", () => {
  for (const [a, b] of [
    [10, 10],
    [11, 10],
  ] as const)
    for (const self of ["a", "b"])
      expect(moveOf({ sites: a + b, processes: [process("a", a), process("b", b)] }, self).give).toBe(0);
});

test("sites of a dead process are shared by the others", () => {
  expect(moveOf({ sites: 20, processes: [process("b", 7), process("c", 6)] }, "c")).toEqual({
    take: 4,
    give: 0,
  });
});

test("sitesAtMost is never exceeded: the others lead more, or sites stay without a leader", () => {
  const processes = [process("a", 0, 10), process("b", 0)];
  expect(moveOf({ sites: 100, processes }, "a")).toEqual({ take: 10, give: 0 });
  expect(moveOf({ sites: 100, processes }, "b")).toEqual({ take: 90, give: 0 });
  expect(moveOf({ sites: 100, processes: [process("a", 0, 10)] }, "a").take).toBe(10);
});

test("a process that is not counted as alive moves nothing", () => {
  expect(moveOf({ sites: 5, processes: [process("a", 5)] }, "b")).toEqual({ take: 0, give: 0 });
});

/** The move of a process that leads `own` sites beside one that leads `led` and has this room. */
const at = (led: number, room: number, own: number) =>
  moveOf({ sites: 100, processes: [process("slow", led, 10_000, room), process("fast", own)] }, "fast");

test("free sites that the others have no room for are taken, and given back as they get room", () => {
  expect(at(10, 0, 50)).toEqual({ take: 40, give: 0 });
  expect(at(10, 15, 50)).toEqual({ take: 25, give: 0 });
  expect(at(10, 40, 50)).toEqual({ take: 0, give: 0 });
  expect(at(10, 0, 90)).toEqual({ take: 0, give: 0 });
  expect(at(10, 3, 90)).toEqual({ take: 0, give: 3 });
  expect(at(10, 96, 90)).toEqual({ take: 0, give: 8 });
  // The other process takes what is free before it needs a site that is led.
  expect(at(10, 5, 85)).toEqual({ take: 0, give: 0 });
});

test("repeated moves end with every site led, no process above its most, and the shares even", () => {
  assert(
    property(
      integer({ min: 0, max: 500 }),
      array(record({ led: integer({ min: 0, max: 200 }), most: integer({ min: 1, max: 400 }) }), {
        minLength: 1,
        maxLength: 6,
      }),
      (free, parts) => {
        const processes = parts.map(({ led, most }, index) =>
          process(String(index), Math.min(led, most), most),
        );
        const sites = free + processes.reduce((sum, { led }) => sum + led, 0);
        let now = processes;
        for (let turn = 0; turn < 100; turn += 1) {
          let left = sites - now.reduce((sum, { led }) => sum + led, 0);
          now = now.map((each) => {
            const { take, give } = moveOf({ sites, processes: now }, each.process);
            const taken = Math.min(take, left);
            left -= taken;
            return { ...each, led: each.led + taken - give };
          });
        }
        const room = now.reduce((sum, { most }) => sum + most, 0);
        expect(now.reduce((sum, { led }) => sum + led, 0)).toBe(Math.min(sites, room));
        for (const { led, most } of now) expect(led).toBeLessThanOrEqual(most);
        const highest = Math.max(...now.map(({ led }) => led));
        for (const { led, most } of now)
          expect(led).toBeGreaterThanOrEqual(Math.min(most, highest) - parts.length);
      },
    ),
    { numRuns: 200 },
  );
});
