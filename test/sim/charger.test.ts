import { expect, test } from "vitest";

import { orderExpires } from "../../src/chargers/native/payload.ts";
import { seconds, watts } from "../../src/domain/units.ts";
import { limitOf, step, accept } from "../../src/sim/charger.ts";
import { aCharger, at, current, order, ordered } from "./bay.ts";

test("an order ends at `until` when that is before the end of its lease", () => {
  expect(orderExpires({ until: at(3), lease: seconds(180) }, at(0))).toBe(at(3));
  expect(orderExpires({ until: at(300), lease: seconds(180) }, at(0))).toBe(at(180));
});

test("a repeated id renews the lease; a lower id is rejected", () => {
  const charger = ordered(aCharger(), order(5, current(8), at(5)));
  const renewed = ordered(charger, order(5, current(8), at(9)), at(4));
  expect(limitOf(step(renewed, at(8)))).toBe(8);
  expect(accept(renewed, order(4, current(16)), at(4))).toEqual({
    accepted: false,
    reason: "older than 7-5",
  });
  expect(accept(renewed, { ...order(9, current(16)), epoch: 6 }, at(4))).toMatchObject({ accepted: false });
  expect(accept(renewed, { ...order(1, current(16)), epoch: 8 }, at(4))).toMatchObject({ accepted: true });
});

test("an expired order and a negative level are rejected", () => {
  expect(accept(aCharger(), order(1, current(8), at(3)), at(3))).toMatchObject({ accepted: false });
  expect(accept(aCharger(), order(1, current(-1)), at(3))).toMatchObject({ accepted: false });
});

test("the answer contains the accepted level in the order's own unit", () => {
  expect(accept(aCharger(), order(1, current(40)), at(0))).toMatchObject({ value: 32 });
  expect(accept(aCharger(), order(1, { kind: "power", watts: watts(7400) }), at(0))).toMatchObject({
    value: 7383,
  });
  expect(accept(aCharger(), order(1, { kind: "release" }), at(0))).toMatchObject({ value: null });
});
