import { expect, test } from "vitest";

import { seconds, watts } from "../../src/domain/units.ts";
import { limitOf, step, accept, orderExpires } from "../../src/sim/charger.ts";
import { aCharger, at, current, order, told } from "./bay.ts";

test("`until` ends it before the lease does", () => {
  expect(orderExpires(at(0), at(3), seconds(180))).toBe(at(3));
  expect(orderExpires(at(0), at(300), seconds(180))).toBe(at(180));
});

test("the same id again renews the lease; a lower one is refused", () => {
  const charger = told(aCharger(), order(5, current(8), at(5)));
  const renewed = told(charger, order(5, current(8), at(9)), at(4));
  expect(limitOf(step(renewed, at(8)))).toBe(8);
  expect(accept(renewed, order(4, current(16)), at(4))).toEqual({
    accepted: false,
    reason: "older than 7-5",
  });
  expect(accept(renewed, { ...order(9, current(16)), epoch: 6 }, at(4))).toMatchObject({ accepted: false });
  expect(accept(renewed, { ...order(1, current(16)), epoch: 8 }, at(4))).toMatchObject({ accepted: true });
});

test("an order whose time has passed, or that is no level, is refused", () => {
  expect(accept(aCharger(), order(1, current(8), at(3)), at(3))).toMatchObject({ accepted: false });
  expect(accept(aCharger(), order(1, current(-1)), at(3))).toMatchObject({ accepted: false });
});

test("the answer names what it will hold to, in the unit that was asked", () => {
  expect(accept(aCharger(), order(1, current(40)), at(0))).toMatchObject({ value: 32 });
  expect(accept(aCharger(), order(1, { kind: "power", watts: watts(7400) }), at(0))).toMatchObject({
    value: 7383,
  });
  expect(accept(aCharger(), order(1, { kind: "release" }), at(0))).toMatchObject({ value: null });
});
