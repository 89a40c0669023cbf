import { expect, test } from "vitest";

import { describePriorState, priorState } from "../../src/commissioning/trial.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { amperes } from "../../src/domain/units.ts";
import { aCharger } from "../support/aCharger.ts";

const A = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const before = (standing: Desired | null, shown: Desired | null) => priorState(standing, shown, aCharger());

test("our own limit is restored, whatever the charger shows", () => {
  expect(before(A(10), A(16))).toEqual({ desired: A(10), source: "record" });
  expect(describePriorState(before(A(10), null))).toBe("set to 10 A by us before");
});

test("a limit of another controller is restored, and so is the absence of one", () => {
  expect(before(null, A(16))).toEqual({ desired: A(16), source: "charger" });
  expect(describePriorState(before(null, A(16)))).toBe("at 16 A before, not by us");
  expect(before(null, A(32)).desired).toEqual({ kind: "release" });
  expect(describePriorState(before(null, { kind: "release" }))).toBe("free before");
});

test("a charger whose prior level is not known is released, and the output mentions that", () => {
  expect(before(null, null).desired).toEqual({ kind: "release" });
  expect(describePriorState(before(null, null))).toContain("so it is released");
});
