import { expect, test } from "vitest";

import { FloodGate } from "../../../src/chargers/broker/inFlight.ts";
import { instant } from "../../../src/domain/units.ts";

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
