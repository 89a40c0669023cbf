import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { allowedCurrent, allowedPower } from "../../src/chargers/profile/level.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { amperes, seconds, watts } from "../../src/domain/units.ts";
import { MODELS } from "../../src/sim/mixedFloor.ts";
import { BUS, Pair, TRAITS } from "./pairing.ts";

const EACH = 20;
const WATTS_PER_AMPERE = TRAITS.phases * TRAITS.voltage;
const NOISE = 1e-6;

const aLevel = fc.oneof(
  fc.double({ min: 0, max: 40, noNaN: true }),
  fc.constantFrom(0, 4, 5.99, 6, 6.05, 13.7, 16, 31.99, 32, 80),
);
const anOrder: fc.Arbitrary<Desired> = fc.oneof(
  { weight: 6, arbitrary: aLevel.map((level) => ({ kind: "current" as const, amperes: amperes(level) })) },
  {
    weight: 3,
    arbitrary: aLevel.map((level) => ({
      kind: "power" as const,
      watts: watts(Math.floor(level * WATTS_PER_AMPERE)),
    })),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "pause" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "release" as const }) },
);
const aDay = fc.record({
  maxCurrent: fc.constantFrom(16, 20, 32),
  vehicleMax: fc.constantFrom(10, 16, 32),
  orders: fc.array(fc.record({ desired: anOrder, rest: fc.integer({ min: 0, max: 90 }) }), {
    minLength: 1,
    maxLength: 8,
  }),
});

/** Level that the driver may request, A per phase. Null: released, the charger decides. */
function promised(desired: Desired, { instance }: Pair): number | null {
  switch (desired.kind) {
    case "current":
      return allowedCurrent(desired.amperes, instance) ?? 0;
    case "power": {
      const level = allowedPower(desired.watts, instance);
      if (level === null) return 0;
      return level.kind === "current" ? level.amperes : level.watts / WATTS_PER_AMPERE;
    }
    case "pause":
      return 0;
    case "release":
      return null;
  }
}

/** Level that the charger can apply: 0 below its minimum, otherwise in tenths of an ampere. */
const possible = (level: number): number =>
  level + NOISE < TRAITS.minCurrent ? 0 : Math.floor(level * 10 + NOISE) / 10;

describe("two hundred chargers of ten models, a random day each", () => {
  test("the depot has ten models", () => expect(MODELS.size).toBe(10));

  test.each([...MODELS.keys()])("%s reaches the requested level and never exceeds it", (profile) => {
    fc.assert(
      fc.property(aDay, ({ maxCurrent, vehicleMax, orders }) => {
        const pair = new Pair({
          profile,
          maxCurrent,
          vehicle: { ...BUS, maxCurrent: amperes(vehicleMax) },
        });
        pair.pass(seconds(5));
        for (const { desired, rest } of orders) {
          pair.order(desired);
          const most = promised(desired, pair) ?? maxCurrent;
          expect(pair.limit).toBeLessThanOrEqual(most + NOISE);
          pair.pass(seconds(rest), () => expect(pair.limit).toBeLessThanOrEqual(most + NOISE));
          pair.pass(seconds(5));
          expect(pair.drawn).toBeLessThanOrEqual(Math.min(most, vehicleMax) + NOISE);
          expect(pair.telemetry.powerW).toBe(Math.round(pair.drawn * WATTS_PER_AMPERE));
          expect(pair.telemetry.state === "charging").toBe(pair.drawn > 0);
          if (desired.kind === "release") continue;
          expect(pair.drawn).toBeGreaterThanOrEqual(
            Math.min(Math.floor(possible(most) * 10) / 10, vehicleMax) - 0.1 - NOISE,
          );
        }
      }),
      { numRuns: EACH, seed: 20_261_121 },
    );
  });
});
