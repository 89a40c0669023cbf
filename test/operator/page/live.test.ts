import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Collection, type Frame, FrameQueue } from "../../../src/operator/page/live.ts";
import { aRow, aShownCharger } from "../../support/aPageRow.ts";

/** Pictures of a browser that a test draws. */
let requested: (() => void)[] = [];
const draw = (): void => {
  for (const picture of requested.splice(0)) picture();
};
let isHidden = false;
let changed = (): void => {};
const hide = (): void => {
  isHidden = true;
  changed();
};

let applied: Frame[] = [];
let queue: FrameQueue;
const charger = (number: number, soc = 50): void =>
  queue.add({ kind: "charger", value: aShownCharger({ charger: `bay-${number}`, soc }) });
const yard = (count: number): void => {
  for (let number = 0; number < count; number += 1) charger(number);
};

beforeEach(() => {
  vi.useFakeTimers();
  requested = [];
  applied = [];
  isHidden = false;
  queue = new FrameQueue((frame) => void applied.push(frame), {
    isHidden: () => isHidden,
    onHiddenChange: (listener) => (changed = listener),
    beforePicture: (listener) => void requested.push(listener),
  });
});
afterEach(() => {
  vi.useRealTimers();
});

test("a yard that reports at once is applied a few chargers before each frame", () => {
  yard(30);
  draw();
  expect(applied).toHaveLength(12);
  draw();
  draw();
  expect(applied).toHaveLength(30);
  draw();
  expect(requested).toEqual([]);
});

test("a long queue is applied in larger shares", () => {
  yard(6000);
  draw();
  expect(applied).toHaveLength(200);
});

test("the later of two messages about an object is applied", () => {
  charger(1, 50);
  charger(1, 51);
  for (const seq of [7, 8]) queue.add({ kind: "audit", value: aRow("05:00", "decision", { seq }) });
  queue.add({ kind: "audit", value: aRow("05:00", "operator", { seq: 9 }) });
  draw();
  expect(
    applied.map(({ kind, value }) => (kind === "charger" ? value.soc : kind === "audit" && value.seq)),
  ).toEqual([51, 8, 9]);
});

test("in the background all is applied each second, also what was to be drawn before", () => {
  yard(30);
  hide();
  vi.advanceTimersByTime(999);
  expect(applied).toHaveLength(0);
  vi.advanceTimersByTime(1);
  expect(applied).toHaveLength(30);
  charger(1);
  vi.advanceTimersByTime(1000);
  expect(applied).toHaveLength(31);
});

test("of two lists on their way at once, each keeps what changed since it was requested", () => {
  const chargers = new Collection<{ readonly id: string; readonly kw: number }>(({ id }) => id);
  const shown = (): string => chargers.all.value.map(({ id, kw }) => `${id} ${kw}`).join(", ");
  const list = [
    { id: "bay-1", kw: 1 },
    { id: "bay-2", kw: 1 },
  ];
  const first = performance.now();
  vi.advanceTimersByTime(10);
  chargers.put({ id: "bay-1", kw: 2 });
  chargers.put({ id: "bay-3", kw: 2 });
  vi.advanceTimersByTime(10);
  const second = performance.now();
  vi.advanceTimersByTime(10);
  chargers.put({ id: "bay-2", kw: 3 });
  chargers.load([{ id: "bay-1", kw: 2 }, ...list.slice(1), { id: "bay-3", kw: 2 }], second);
  expect(shown()).toBe("bay-1 2, bay-2 3, bay-3 2");
  chargers.load(list, first);
  expect(shown()).toBe("bay-1 2, bay-2 3, bay-3 2");
  chargers.load(list);
  expect(shown()).toBe("bay-1 1, bay-2 1");
});
