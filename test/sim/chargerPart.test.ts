import * as fc from "fast-check";
import { expect, test } from "vitest";

import { orderExpires } from "../../src/chargers/native/payload.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { instant, seconds, watts } from "../../src/domain/units.ts";
import { limitOf, plugged, rebooted, step, stateOf, telemetryOf, accept } from "../../src/sim/charger.ts";
import { aCharger, at, BUS, current, order, ordered } from "./bay.ts";

test("without an order the current rises to the maximum of the vehicle", () => {
  expect(step(aCharger(), at(1)).drawn).toBe(8);
  expect(step(aCharger(), at(3)).drawn).toBe(24);
  expect(step(aCharger(), at(60)).drawn).toBe(24);
});

test("the drawn current follows a setpoint within seconds, down and up", () => {
  const down = ordered(step(aCharger(), at(10)), order(1, current(10)));
  expect(step(down, at(11)).drawn).toBe(16);
  expect(step(down, at(20)).drawn).toBe(10);
  const up = ordered(step(down, at(20)), order(2, current(16)));
  expect(step(up, at(30)).drawn).toBe(16);
});

test("power is shared by the phases and rounded down to 0.1 A", () => {
  const charger = ordered(aCharger(), order(1, { kind: "power", watts: watts(7400) }));
  expect(limitOf(charger)).toBe(10.7);
});

test("a pause and a current below the minimum both stop charging", () => {
  for (const desired of [{ kind: "pause" } as const, current(5.9)]) {
    const charger = step(ordered(step(aCharger(), at(10)), order(1, desired)), at(20));
    expect([charger.drawn, stateOf(charger)]).toEqual([0, "paused"]);
  }
});

test("the default holds from the end of the lease, even when evaluated later", () => {
  const expires = orderExpires({ until: null, lease: seconds(5) }, at(10));
  const charger = ordered(step(aCharger(), at(10)), order(1, current(8), expires), at(10));
  expect(step(charger, at(14)).drawn).toBe(8);
  expect(step(charger, at(16)).drawn).toBe(16);
  expect(step(charger, at(600)).drawn).toBe(24);
});

test("the meter counts the drawn energy: an hour at 16 A on three phases is 11 kWh", () => {
  const charger = ordered(aCharger(), order(1, current(16), at(99_999)));
  const settled = step(charger, at(10));
  const later = step(settled, at(3610));
  expect(later.energyWh - settled.energyWh).toBeCloseTo(11_040, 0);
  expect(later.vehicle?.soc).toBeCloseTo(40 + 11_040 / 3000, 1);
});

test("a full vehicle draws nothing, an empty bay reports no vehicle", () => {
  const full = step(aCharger({ ...BUS, soc: 100 }), at(10));
  expect([full.drawn, stateOf(full)]).toEqual([0, "finished"]);
  const empty = plugged(step(aCharger(), at(10)), null, at(10));
  expect(telemetryOf(empty)).toMatchObject({ state: "unplugged", vehicle: null, powerW: 0 });
});

test("a reboot loses the order and keeps the meter", () => {
  const charger = step(ordered(aCharger(), order(5, current(8))), at(10));
  const again = rebooted(charger, at(10));
  expect(again.energyWh).toBe(charger.energyWh);
  expect(accept(again, order(1, current(16)), at(10))).toMatchObject({ accepted: true });
});

const wishes = fc.oneof(
  fc.double({ min: 0, max: 100, noNaN: true }).map(current),
  fc
    .double({ min: 0, max: 70_000, noNaN: true })
    .map((value): Desired => ({ kind: "power", watts: watts(value) })),
  fc.constant<Desired>({ kind: "pause" }),
  fc.constant<Desired>({ kind: "release" }),
);

test("after the ramp the drawn current is within the limits of order, vehicle and hardware", () => {
  const history = fc.array(
    fc.tuple(wishes, fc.integer({ min: 0, max: 20 }), fc.integer({ min: 1, max: 20 })),
  );
  fc.assert(
    fc.property(history, (orders) => {
      let charger = aCharger();
      for (const [seq, [desired, wait, lease]] of orders.entries()) {
        const when = instant(charger.at + wait * 1000);
        charger = ordered(
          charger,
          order(seq, desired, orderExpires({ until: null, lease: seconds(lease) }, when)),
          when,
        );
      }
      // 32 A at 8 A per second: settled 4 s after the last change, even if the lease ended during the ramp.
      const settled = step(charger, instant(charger.at + 24_000));
      expect(settled.drawn).toBeLessThanOrEqual(Math.min(limitOf(settled), BUS.maxCurrent) + 1e-9);
      const during = step(charger, instant(charger.at + 4000));
      if (charger.order && charger.order.expires > during.at)
        expect(during.drawn).toBeLessThanOrEqual(Math.min(limitOf(during), BUS.maxCurrent) + 1e-9);
    }),
  );
});

test("the number of evaluations does not change the result", () => {
  fc.assert(
    fc.property(wishes, fc.array(fc.integer({ min: 0, max: 30_000 })), (desired, looks) => {
      const start = ordered(step(aCharger(), at(5)), order(1, desired, at(12)));
      const once = step(start, at(35));
      const often = looks
        .toSorted((a, b) => a - b)
        .reduce((charger, ms) => step(charger, instant(at(5) + ms)), start);
      const last = step(often, at(35));
      expect(last.drawn).toBeCloseTo(once.drawn, 6);
      expect(last.energyWh).toBeCloseTo(once.energyWh, 6);
    }),
  );
});
