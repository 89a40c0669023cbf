import * as fc from "fast-check";
import { expect, test } from "vitest";

import { arbitrate as arbitrated } from "../../../src/control/decide/verdict.ts";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import type { RankSettings } from "../../../src/control/schedule/vehiclePlan.ts";
import { MOST_OVERRULED } from "../../../src/domain/reason.ts";
import { amperes, eventId, instant, watts } from "../../../src/domain/units.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { inForce } from "../../support/aVerdict.ts";
import { aDispatch } from "../../support/anEvent.ts";

/** W per A of three phases at 230 V. */
const RATIO = 690;
const arbitrate = (dispatches: readonly Dispatch[], settings: RankSettings, held: readonly string[] = []) =>
  arbitrated(inForce(dispatches, settings), new Set(held.map(eventId)), RATIO);
const winner = (dispatches: readonly Dispatch[], changes: Parameters<typeof settingsWith>[0] = {}) =>
  arbitrate(dispatches, settingsWith(changes)).winner?.event.id ?? null;
const event = (id: string, priority: number | null, more: Partial<Dispatch["event"]> = {}) =>
  aDispatch({}, { priority, ...more, id });

test("without a dispatch in force there is no winner", () => {
  expect(arbitrate([], settingsWith())).toEqual({
    winner: null,
    overruled: [],
    overruledCount: 0,
    hasSetAside: false,
  });
});

test("F54: the lower priority number wins, or the higher where the site configures that", () => {
  const inForce = [event("A", 2), event("B", 1), event("C", 3)];
  expect(winner(inForce)).toBe("B");
  expect(winner(inForce, { priority: "higher" })).toBe("C");
});

test("the overruled are listed best first", () => {
  const { overruled } = arbitrate([event("A", 2), event("B", 1), event("C", 3)], settingsWith());
  expect(overruled.map((dispatch) => dispatch.event.id)).toEqual(["A", "C"]);
});

test("the best five of hundreds of overruled dispatches are named, and the rest is counted", () => {
  const inForce = Array.from({ length: 460 }, (_, index) => event(`EV-${index}`, index));
  const { winner: first, overruled, overruledCount } = arbitrate(inForce, settingsWith());
  expect(first?.event.id).toBe("EV-0");
  expect(overruled.map((dispatch) => dispatch.event.id)).toEqual(["EV-1", "EV-2", "EV-3", "EV-4", "EV-5"]);
  expect([overruled.length, overruledCount]).toEqual([MOST_OVERRULED, 459]);
});

test("an event that an operator set aside neither wins nor counts as overruled", () => {
  const inForce = Array.from({ length: 20 }, (_, index) => event(`EV-${index}`, index + 1));
  const held = Array.from({ length: 10 }, (_, index) => `EV-${index}`);
  const ranking = arbitrate(inForce, settingsWith(), held);
  expect(ranking.winner?.event.id).toBe("EV-10");
  expect([ranking.overruledCount, ranking.hasSetAside]).toEqual([9, true]);
  expect(arbitrate(inForce, settingsWith(), ["EV-99"]).hasSetAside).toBe(false);
});

test("an absent priority loses to any", () => {
  for (const priority of ["lower", "higher"] as const) {
    expect(winner([event("A", null), event("B", 1_000_000)], { priority })).toBe("B");
    expect(winner([event("A", null), event("B", -5)], { priority })).toBe("B");
  }
});

test("priority 0 is the highest, or, where the partner sends 0 for none, loses to any other", () => {
  for (const priority of ["lower", "higher"] as const) {
    const inForce = [event("zero", 0), event("some", 7)];
    expect(winner(inForce, { priority })).toBe("zero");
    expect(winner(inForce, { priority, priorityZero: "unset" })).toBe("some");
  }
});

test("F54: at equal priority the newest wins: modified, then created, then the greater ID", () => {
  const [first, second] = [instant(1), instant(2)];
  const modified = [
    event("A", 1, { revision: first }),
    event("B", 1, { revision: second, created: first }),
    event("C", 1, { revision: first, created: second }),
  ];
  expect(winner(modified)).toBe("B");
  expect(winner([event("A", 1, { created: second }), event("B", 1, { created: first })])).toBe("A");
  expect(winner([event("A", 1), event("C", 1), event("B", 1)])).toBe("C");
});

const current = (id: string, level: number) =>
  aDispatch({ setpoint: { kind: "current", amperes: amperes(level) } }, { id });

const power = (id: string, level: number) =>
  aDispatch({ setpoint: { kind: "power", watts: watts(level) } }, { id });

test("F54: at equal priority the most restrictive wins where the site configures that, A against W by phases and volts", () => {
  const ties = "mostRestrictive";
  expect(winner([current("A", 16), power("B", 11_041)], { ties })).toBe("A");
  expect(winner([current("A", 16), power("B", 11_039)], { ties })).toBe("B");
  expect(winner([current("A", 16), power("B", 11_040)], { ties })).toBe("B");
});

test("the winner does not depend on the order in which the dispatches are found", () => {
  const dispatch = fc
    .record({
      priority: fc.option(fc.integer({ min: -1, max: 2 })),
      revision: fc.nat(2),
      created: fc.nat(2),
      level: fc.integer({ min: -1, max: 3 }),
    })
    .map(
      ({ priority, revision, created, level }) =>
        (id: string) =>
          aDispatch(
            { setpoint: { kind: "current", amperes: amperes(level) } },
            { id, priority, revision: instant(revision), created: instant(created) },
          ),
    );
  const knobs = fc.record({
    priority: fc.constantFrom("lower" as const, "higher" as const),
    priorityZero: fc.constantFrom("highest" as const, "unset" as const),
    ties: fc.constantFrom("newest" as const, "mostRestrictive" as const),
  });
  fc.assert(
    fc.property(fc.array(dispatch, { minLength: 1, maxLength: 6 }), knobs, (make, knobs) => {
      const inForce = make.map((one, index) => one(`EV-${index}`));
      expect(arbitrate(inForce.toReversed(), knobs)).toEqual(arbitrate(inForce, knobs));
    }),
  );
});
