import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instantiateProfile, type ProfileInstance } from "../../../src/chargers/profile/instance.ts";
import { allowedCurrent, allowedPower, maxCurrent, onTheWire } from "../../../src/chargers/profile/level.ts";
import { aProfile } from "./aProfile.ts";

function bound(limits: object, params = {}) {
  const power = "power" in limits ? { setPower: [{ topic: "p", text: "{power}" }] } : {};
  const { actions } = aProfile();
  const binding = instantiateProfile(
    aProfile({
      limits: { current: { min: 6, max: 32 }, zero: "pause", belowMinimum: "ignored", ...limits },
      actions: { ...actions, ...power },
    }),
    { id: "7", ...params },
  );
  if (!binding.ok) throw new Error(binding.reason);
  return binding.instance;
}

test.each([
  [{ step: 1 }, 13.999, 13],
  [{ step: 0.1 }, 13.7, 13.7],
  [{ step: 0.1 }, 13.79, 13.7],
  [{ step: 0.01 }, 8.03, 8.03],
  [{ step: 0.001, scale: 1000 }, 8.03, 8030],
  [{ step: 0.001, scale: 1000 }, 13.9999, 13_999],
  [{ step: 0.1, scale: 10 }, 13.7, 137],
  [{ step: 1 }, 5.999_999_999, 6],
  [{ step: 0.001, scale: 1000 }, 5.999_999_9, 6000],
  [{ step: 0.01 }, 5.999_999_9, 6],
])(
  "with %j %d A is %d on the wire: binary fractions are forgiven, nothing is rounded up",
  (more, asked, wire) => {
    const charger = bound({ current: { min: 6, max: 32, ...more } });
    expect(onTheWire(allowedCurrent(asked, charger) ?? 0, charger)).toBe(wire);
  },
);

const built = (more: object, params = {}): ProfileInstance => ({
  ...bound({}, params),
  profile: { ...bound({}).profile, limits: { ...bound({}).profile.limits, current: limitsOf(more) } },
});
const limitsOf = (more: object) => ({ ...bound({}).profile.limits.current, ...more });

test.each([
  [{ step: 0.3 }, 16, 15.9],
  [{ step: 0.7, min: 0.7 }, 6.4, 6.3],
  [{ step: 0.1 }, 8.3, 8.3],
])("with %j %d A is %d A, without a tail of binary fractions", (more, asked, allowed) => {
  expect(allowedCurrent(asked, built(more))).toBe(allowed);
});

test("a level that the step or the wire would round to below the minimum, or to 0, is a pause", () => {
  expect(allowedCurrent(7, built({ step: 4 }))).toBeNull();
  expect(allowedCurrent(9, built({ step: 4 }))).toBe(8);
  expect(allowedCurrent(9, built({ scale: 0.1 }))).toBeNull();
  expect(allowedCurrent(31, built({ step: 40 }))).toBeNull();
  fc.assert(
    fc.property(
      fc.record({
        step: fc.double({ min: 0.001, max: 40, noNaN: true }),
        scale: fc.oneof(fc.constant(1), fc.double({ min: 0.001, max: 1000, noNaN: true })),
        min: fc.double({ min: 0, max: 10, noNaN: true }),
      }),
      fc.double({ min: 0, max: 40, noNaN: true }),
      (more, asked) => {
        const charger = built(more);
        const allowed = allowedCurrent(asked, charger);
        const told = onTheWire(allowed ?? 0, charger) / more.scale;
        return (
          allowed === null ||
          (told > 0 && told >= more.min - 2e-6 && told <= Math.max(asked, more.min) + 2e-6)
        );
      },
    ),
  );
});

test("watts are not rounded down to below the minimum either", () => {
  const power = { max: 22_000, step: 1000 };
  expect(allowedPower(4500, bound({ power }))).toBeNull();
  expect(allowedPower(5500, bound({ power }))).toEqual({ kind: "power", watts: 5000 });
});

test("the charger's own maximum counts, up to the highest level that the make accepts", () => {
  const current = { min: 6, max: 16, ceiling: 32 };
  expect(maxCurrent(bound({ current }))).toBe(16);
  expect(maxCurrent(bound({ current }, { maxCurrentA: 20.5 }))).toBe(20);
  expect(maxCurrent(bound({ current }, { maxCurrentA: 63 }))).toBe(32);
  expect(allowedCurrent(20, bound({ current }, { maxCurrentA: 5 }))).toBeNull();
});

test("a make that takes watts has its smallest current in watts too", () => {
  const power = { max: 22_000 };
  expect(allowedPower(4139, bound({ power }))).toBeNull();
  expect(allowedPower(4140.9, bound({ power }))).toEqual({ kind: "power", watts: 4140 });
  expect(allowedPower(1380, bound({ power }, { phases: 1 }))).toEqual({ kind: "power", watts: 1380 });
  expect(allowedPower(99_999, bound({ power }))).toEqual({ kind: "power", watts: 22_000 });
  expect(allowedPower(99_999, bound({ power }, { maxCurrentA: 16 }))).toEqual({
    kind: "power",
    watts: 11_040,
  });
});

test("negative watts are fed back where the make can; other makes pause", () => {
  expect(allowedPower(-5000, bound({ power: { max: 22_000 } }))).toBeNull();
  expect(allowedPower(-5000, bound({}))).toBeNull();
  const feeding = bound({ power: { max: 22_000, discharge: 10_000 } });
  expect(allowedPower(-5000.7, feeding)).toEqual({ kind: "power", watts: -5000 });
  expect(allowedPower(-50_000, feeding)).toEqual({ kind: "power", watts: -10_000 });
  expect(allowedPower(-0.5, feeding)).toBeNull();
});
