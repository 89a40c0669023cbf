import * as fc from "fast-check";
import { expect, test } from "vitest";
import { phaseChoice } from "../../../src/control/decide/limits.ts";
import { levelOnRecord, type Setpoint } from "../../../src/domain/setpoint.ts";
import { amperes, minutes, seconds, watts } from "../../../src/domain/units.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";

const A = (level: number): Setpoint => ({ kind: "current", amperes: amperes(level) });
const W = (level: number): Setpoint => ({ kind: "power", watts: watts(level) });
const phaseSwitching = { every: minutes(15), settle: seconds(10), deadTime: seconds(60) };

/** `one: 10 A, three: pause, best 1`. */
function said(
  asked: Setpoint,
  charger: Parameters<typeof aCharger>[0] = {},
  vehicle: Parameters<typeof aVehicle>[0] = {},
): string {
  const choice = phaseChoice(asked, aCharger({ phaseSwitching, ...charger }), aVehicle(vehicle), null);
  if (choice === null) return "left alone";
  const { on, best } = choice;
  return `one: ${levelOnRecord(on[1].desired)}, three: ${levelOnRecord(on[3].desired)}, best ${best}`;
}

test("phases are left alone unless configured to switch", () => {
  expect(said(W(2300), { phaseSwitching: null })).toBe("left alone");
});

test("a level too low for three phases may be enough for one", () => {
  expect(said(W(2300))).toBe("one: 10 A, three: pause, best 1");
  expect(said(W(2300), { takesWatts: false, currentStep: amperes(1) })).toBe(
    "one: 10 A, three: pause, best 1",
  );
  expect(said(W(4140))).toBe("one: 18 A, three: 4140 W, best 3");
  expect(said(W(1000))).toBe("one: pause, three: pause, best null");
});

test("a current is one for each phase, so one phase helps only where a maximum in watts leaves too little", () => {
  expect(said(A(4))).toBe("one: pause, three: pause, best null");
  expect(said(A(16), {}, { maxPower: watts(3000) })).toBe("one: 13 A, three: pause, best 1");
});

test("one phase that can deliver the level is better than a minimum that would be held", () => {
  const hold = { belowMinimum: "hold" } as const;
  expect(said(W(2300), hold)).toBe("one: 10 A, three: 4140 W, best 1");
  expect(said(W(1000), hold)).toBe("one: 6 A, three: 4140 W, best null");
});

test("a vehicle that charges on one phase anyway needs no switch", () => {
  expect(said(W(2300), {}, { phases: 1 })).toBe("one: 10 A, three: 2300 W, best 3");
});

test("for any setpoint, neither number of phases gets more than asked", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.integer({ min: -5_000, max: 30_000 }).map(W),
        fc.double({ min: 0, max: 40, noNaN: true }).map(A),
      ),
      fc.boolean(),
      fc.option(fc.integer({ min: 1_000, max: 20_000 }).map(watts)),
      (asked, takesWatts, maxPower) => {
        const charger = aCharger({ phaseSwitching, takesWatts });
        const choice = phaseChoice(asked, charger, aVehicle({ maxPower }), null);
        for (const count of [1, 3] as const) {
          const desired = choice?.on[count].desired;
          if (desired?.kind !== "current" && desired?.kind !== "power") continue;
          const drawn = desired.kind === "power" ? desired.watts : desired.amperes * count * 230;
          expect(drawn).toBeLessThanOrEqual((maxPower ?? Infinity) + 1e-6);
          if (asked.kind === "power") expect(drawn).toBeLessThanOrEqual(asked.watts + 1e-6);
          else expect(drawn).toBeLessThanOrEqual(asked.amperes * count * 230 + 1e-6);
          expect(drawn).toBeGreaterThanOrEqual(6 * count * 230 - 1e-6);
        }
      },
    ),
  );
});
