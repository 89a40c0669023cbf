import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { CommandRecord } from "../../../src/domain/command.ts";
import { Ramp, riseOf } from "../../../src/control/decide/ramp.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import { amperes, chargerId, instant, seconds, watts } from "../../../src/domain/units.ts";
import { aCharger } from "../../support/aCharger.ts";
import { processorMs } from "../../support/processorMs.ts";

const NOON = instant(Date.UTC(2026, 10, 21, 12));
const A = (value: number): Desired & { kind: "current" } => ({ kind: "current", amperes: amperes(value) });
const W = (value: number): Desired => ({ kind: "power", watts: watts(value) });
const [ONE, TWO, THREE] = ["bay-01", "bay-02", "bay-03"].map(chargerId) as [never, never, never];
const later = (by: number) => instant(NOON + seconds(by));

test.each([
  [A(10), A(16), 6],
  [A(16), A(10), 0],
  [{ kind: "pause" }, A(10), 10],
  [A(10), { kind: "release" }, 22],
  [W(6900), A(16), 6],
  [{ kind: "release" }, A(10), 0],
] as const)("from %j to %j the site rises by %d A", (from, to, rise) => {
  expect(riseOf(from, to, aCharger(), null, "A")).toBeCloseTo(rise, 6);
});

test("an increase in watts is the equivalent of its amperes, or the charger's maximum", () => {
  expect(riseOf(A(10), { kind: "release" }, aCharger(), null, "W")).toBe(22 * 690);
  const one: Desired = { ...A(10), phases: { count: 1, since: NOON, chargingSince: null } };
  expect(riseOf({ kind: "pause" }, one, aCharger(), null, "W")).toBe(2300);
  const dc = aCharger({ maxCurrent: null, maxPower: watts(150_000) });
  expect(riseOf(W(50_000), { kind: "release" }, dc, null, "W")).toBe(100_000);
});

test("increases are sent one after another, the longest waiting first", () => {
  const ramp = new Ramp({ unit: "A", perMinute: 60 });
  expect(ramp.unit).toBe("A");
  expect(ramp.nextSlot(ONE, NOON)).toBe(NOON);
  ramp.passed(20, NOON);
  expect(ramp.nextSlot(TWO, NOON)).toBe(later(20));
  ramp.wait(TWO, 10);
  expect(ramp.nextSlot(THREE, NOON)).toBe(later(30));
  ramp.wait(THREE, 10);
  // Who waits already keeps the place.
  ramp.wait(TWO, 10);
  expect(ramp.nextSlot(TWO, later(20))).toBe(later(20));
  expect(ramp.leave(TWO)).toBe(THREE);
  expect(ramp.leave(THREE)).toBeNull();
  expect(ramp.leave(THREE)).toBeNull();
});

test("after the clock was set back no charger waits for an increase in the future", () => {
  const ramp = new Ramp({ unit: "A", perMinute: 60 });
  ramp.onClockMovedBack(NOON);
  expect(ramp.nextSlot(ONE, NOON)).toBe(NOON);
  ramp.passed(20, NOON);
  ramp.onClockMovedBack(later(10));
  expect(ramp.nextSlot(ONE, NOON)).toBe(later(10));
  ramp.onClockMovedBack(later(20));
  expect(ramp.nextSlot(ONE, NOON)).toBe(later(10));
});

test("after a restart the ramp continues from the earlier commands", () => {
  const told = (charger: never, before: Desired | null, desired: Desired, at: number): CommandRecord => ({
    command: {
      charger,
      epoch: 1,
      seq: 1,
      desired,
      until: null,
      vehicle: null,
      event: null,
      cause: "ended",
      decidedAt: later(at),
    },
    progress: "acknowledged",
    replaces: before,
    sentAt: null,
    sends: 0,
    judgeAt: null,
    resends: 0,
    failures: 0,
  });
  const ramp = new Ramp({ unit: "A", perMinute: 60 });
  ramp.wait(ONE, 100);
  const chargers = new Map([ONE, TWO].map((id) => [id, aCharger({ id })]));
  ramp.recall(
    [
      told(TWO, A(12), { kind: "release" }, 5),
      told(ONE, A(12), { kind: "release" }, 0),
      told(THREE, A(6), { kind: "release" }, 0),
    ],
    chargers,
    later(6),
  );
  expect(ramp.nextSlot(THREE, later(6))).toBe(later(40));
  ramp.recall([told(ONE, null, A(12), 0)], chargers, later(6));
  expect(ramp.nextSlot(THREE, later(6))).toBe(later(6));
  // The clock was set back since: that increase was sent long ago.
  ramp.recall([told(ONE, A(12), { kind: "release" }, 3600)], chargers, later(6));
  expect(ramp.nextSlot(THREE, later(6))).toBe(later(6));
});

test("after any changes of the queue, a slot is the sum of the increases before it", () => {
  const bays = Array.from({ length: 6 }, (_, index) => chargerId(`bay-${index}`));
  const step = fc.record({ bay: fc.nat(5), rise: fc.integer({ min: 1, max: 30 }), leaves: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const ramp = new Ramp({ unit: "A", perMinute: 60 });
      const line = new Map<string, number>();
      for (const { bay, rise, leaves } of steps) {
        const charger = bays[bay] ?? ONE;
        if (leaves) {
          const was = line.delete(charger);
          expect(ramp.leave(charger)).toBe(was ? (line.keys().next().value ?? null) : null);
        } else {
          line.set(charger, rise);
          ramp.wait(charger, rise);
        }
        let before = 0;
        for (const [waiting, size] of line) {
          expect(ramp.nextSlot(chargerId(waiting), NOON)).toBe(later(before));
          before += size;
        }
        expect(ramp.nextSlot(chargerId("another"), NOON)).toBe(later(before));
      }
    }),
  );
});

test("the slots of 20,000 waiting chargers are computed in time that does not grow with the queue", () => {
  const ramp = new Ramp({ unit: "A", perMinute: 60 });
  const bays = Array.from({ length: 20_000 }, (_, index) => chargerId(`bay-${index}`));
  const took = processorMs(() => {
    for (const bay of bays) {
      ramp.nextSlot(bay, NOON);
      ramp.wait(bay, 10);
    }
    for (const bay of bays) ramp.wait(bay, 12);
    // Not in their order.
    for (const bay of bays.toReversed()) ramp.leave(bay);
  });
  // It took seconds when each turn walked the line.
  expect(took).toBeLessThan(1_000);
});
