import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { orderOf } from "../../../src/control/schedule/vehiclePlan.ts";
import { amperes, watts } from "../../../src/domain/units.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { inForce } from "../../support/aVerdict.ts";
import { aDispatch } from "../../support/anEvent.ts";

const RATIO = 690;
const idsOf = (dispatches: Iterable<Dispatch>): readonly string[] =>
  [...dispatches].map(({ event }) => event.id);

test("reading the best of 460 does not read the rest", () => {
  let looks = 0;
  const counted = (index: number): Dispatch => {
    const dispatch = aDispatch({}, { id: `EV-${index}`, priority: index });
    const event = Object.defineProperty({ ...dispatch.event }, "priority", {
      get: () => {
        looks += 1;
        return index;
      },
    });
    return { ...dispatch, event };
  };
  const holding = inForce(
    Array.from({ length: 460 }, (_, index) => counted(index)),
    settingsWith(),
  );
  looks = 0;
  const [best] = holding.ranked(RATIO);
  expect(best?.event.id).toBe("EV-0");
  expect(looks).toBeLessThan(10);
});

test("a removed dispatch is not ranked any more", () => {
  const [one, two] = [aDispatch({}, { id: "EV-1" }), aDispatch({}, { id: "EV-2" })];
  const holding = inForce([one, two], settingsWith());
  expect([holding.delete(one), holding.delete(one)]).toEqual([true, false]);
  expect([idsOf(holding.ranked(RATIO)), holding.count]).toEqual([["EV-2"], 1]);
});

const dispatch = fc.record({
  priority: fc.option(fc.integer({ min: -1, max: 2 })),
  level: fc.integer({ min: 0, max: 3 }),
  isPower: fc.boolean(),
});

test("current and power are ranked together by the charger's ratio", () => {
  const ties = fc.constantFrom("newest" as const, "mostRestrictive" as const);
  fc.assert(
    fc.property(
      fc.array(dispatch, { maxLength: 8 }),
      ties,
      fc.integer({ min: 1, max: 3 }),
      (made, ties, ratio) => {
        const settings = settingsWith({ ties });
        const dispatches = made.map(({ priority, level, isPower }, index) =>
          aDispatch(
            {
              setpoint: isPower
                ? { kind: "power", watts: watts(level * 2) }
                : { kind: "current", amperes: amperes(level) },
            },
            { id: `EV-${index}`, priority },
          ),
        );
        const order = orderOf(settings, ratio);
        expect(idsOf(inForce(dispatches, settings).ranked(ratio))).toEqual(idsOf(dispatches.toSorted(order)));
      },
    ),
  );
});
