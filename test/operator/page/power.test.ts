import { describe, expect, test } from "vitest";

import type { Vehicle } from "../../../src/operator/page/apiAnswers.ts";
import { askedSteps } from "../../../src/operator/page/commands.ts";
import {
  amperesOf,
  fusePower,
  groupsOf,
  lanesOf,
  limitedSteps,
  measuredAmperes,
  plannedPower,
  sitePower,
  wattsPerAmpere,
} from "../../../src/operator/page/power.ts";
import { aRow, aShownCharger, at, noneAway } from "../../support/aPageRow.ts";

const THREE = { phases: 3, voltage: 230, maxCurrentA: 32, maxPowerW: null };
const ONE = { phases: 1, voltage: 240, maxCurrentA: 16, maxPowerW: null };

const under = (event: string, value: number) =>
  aShownCharger({
    asked: { kind: "current", value, unit: "A", event },
    allowed: { kind: "current", value, unit: "A" },
  });
const window = (from: string, until: string, asked: Vehicle["planned"][number]["asked"]) => ({
  event: "EV-1",
  from: at(from),
  until: at(until),
  offsetMs: 0,
  asked,
});

describe("amperes and watts", () => {
  test("are converted by what was measured, though the charger has more phases than its vehicle uses", () => {
    const current = [
      [1, 10],
      [2, 10],
      [3, 0.2],
    ] as const;
    const power = [
      [1, 2350],
      [2, 2360],
      [3, 900],
    ] as const;
    expect(wattsPerAmpere(current, power, THREE)).toBe(236);
  });

  test("are converted by the charger's own phases and voltage while nothing was drawn", () => {
    expect(wattsPerAmpere([], [[1, 7000]], ONE)).toBe(240);
    expect(wattsPerAmpere([], [], undefined)).toBe(690);
  });

  test("a level in W becomes amperes, a pause none, and a release no limit", () => {
    expect(amperesOf({ powerW: 2400 }, 240)).toBe(10);
    expect(amperesOf({ currentA: 16 }, 240)).toBe(16);
    expect(amperesOf({ pause: true }, 240)).toBe(0);
    expect(amperesOf({ release: true }, 240)).toBeNull();
  });

  test("a charger that reports no current is drawn by its power", () => {
    expect(measuredAmperes([], [[1, 2400]], 240)).toEqual([[1, 10]]);
    expect(measuredAmperes([[1, 9]], [[1, 2400]], 240)).toEqual([[1, 9]]);
  });

  test("a level that an event asked for in W is drawn in A, and a decision without one ends it", () => {
    const rows = [
      aRow("05:00", "decision", { facts: { winner: { asked: "7200 W" } } }),
      aRow("05:10", "decision", { facts: { winner: { asked: "16 A" } } }),
      aRow("05:20", "decision", { facts: { winner: null } }),
      aRow("05:21", "outcome"),
    ];
    expect(askedSteps(rows, Date.parse(at("05:00")), 240)).toEqual([
      [Date.parse(at("05:00")), 30],
      [Date.parse(at("05:10")), 16],
      [Date.parse(at("05:20")), null],
    ]);
  });
});

test("the power of the main fuse is that of three phases at the chargers' voltage", () => {
  expect(fusePower(100, { "bay-02": ONE })).toBe(72_000);
  expect(fusePower(100, {})).toBe(69_000);
});

describe("the power of the site", () => {
  const ratings = { "bay-01": THREE, "bay-02": ONE };

  test("is split into limited and free, and a limit in A counts by the phases in use", () => {
    const limited = aShownCharger({
      allowed: { kind: "current", value: 10, unit: "A" },
      measured: { at: at("05:00"), state: "charging", powerW: 2300, currentsA: [10], limitA: 10 },
    });
    const free = aShownCharger({ charger: "bay-02" });
    expect(sitePower([limited, free], ratings, noneAway)).toEqual({
      measured: 13_340,
      limited: 2300,
      free: 11_040,
      allowed: 2300,
      limits: [{ event: null, drawn: 2300, allowed: 2300 }],
      phases: [26, 16, 16],
      silent: 0,
      reserved: 0,
    });
  });

  test("is split by event: what is drawn, and what is allowed", () => {
    const { limits } = sitePower([under("EV-1", 8), under("EV-2", 16), under("EV-1", 10)], ratings, noneAway);
    expect(limits).toEqual([
      { event: "EV-1", drawn: 22_080, allowed: 12_420 },
      { event: "EV-2", drawn: 11_040, allowed: 11_040 },
    ]);
  });

  test("a limited charger that draws nothing counts by its own phases and voltage", () => {
    const idle = aShownCharger({
      charger: "bay-02",
      measured: null,
      allowed: { kind: "current", value: 10, unit: "A" },
    });
    expect(sitePower([idle], ratings, noneAway)).toMatchObject({ measured: 0, allowed: 2400 });
    const paused = aShownCharger({ allowed: { kind: "pause", value: null, unit: null } });
    expect(sitePower([paused], ratings, noneAway)).toMatchObject({ limited: 11_040, allowed: 0 });
  });

  test("a silent charger is reserved for with the most that it can draw", () => {
    const chargers = [aShownCharger({ online: false }), aShownCharger({ charger: "dc", reachable: false })];
    const dc = { phases: 3, voltage: 230, maxCurrentA: null, maxPowerW: 150_000 };
    expect(sitePower(chargers, { ...ratings, dc }, noneAway)).toMatchObject({
      measured: 0,
      silent: 2,
      reserved: 32 * 690 + 150_000,
    });
    expect(sitePower(chargers, {}, noneAway)).toMatchObject({ reserved: 0 });
  });

  test("a charger behind a lost broker is reserved for, also where it reported last that it charges", () => {
    const chargers = [aShownCharger(), aShownCharger({ charger: "bay-02", broker: "yard" })];
    expect(sitePower(chargers, {}, new Set([""]))).toMatchObject({ measured: 11_040, silent: 1 });
  });
});

test("the plan allows each vehicle what its charger can, and within a planned setpoint at most that", () => {
  const ten = { kind: "current" as const, amperes: 10 };
  const { most, steps } = plannedPower([
    { planned: [window("05:00", "06:00", ten)], rating: THREE },
    {
      planned: [window("05:30", "06:30", { kind: "power", watts: 1200 }), window("05:00", "05:45", ten)],
      rating: ONE,
    },
    { planned: [window("05:00", "06:00", ten)], rating: undefined },
  ]);
  expect(most).toBe(22_080 + 3840);
  expect(steps).toEqual([
    { at: Date.parse(at("05:00")), watts: 6900 + 2400 },
    { at: Date.parse(at("05:30")), watts: 6900 + 1200 },
    { at: Date.parse(at("05:45")), watts: 6900 + 1200 },
    { at: Date.parse(at("06:00")), watts: 22_080 + 1200 },
    { at: Date.parse(at("06:30")), watts: 22_080 + 3840 },
  ]);
});

const limited = (from: string, until: string) => window(from, until, { kind: "current", amperes: 16 });

test("spans that overlap get lanes of their own, and a lane is used again", () => {
  const [first, second, third] = [
    { from: 0, until: 10 },
    { from: 5, until: 8 },
    { from: 10, until: 12 },
  ];
  expect(lanesOf([first, second, third], 0)).toEqual([[first, third], [second]]);
  expect(lanesOf([], 0)).toEqual([]);
  // Short ones, which are drawn longer than they are.
  expect(lanesOf([first, third], third.from - first.from + 1)).toEqual([[first], [third]]);
});

test("departures too close together for a mark each are one group, counted from its first", () => {
  const [a, b, c, d] = [0, 4, 9, 10].map((time) => ({ at: time }));
  expect(
    groupsOf(
      [a, b, c, d].filter((each) => each !== undefined),
      10,
    ),
  ).toEqual([[a, b, c], [d]]);
  expect(groupsOf([], 10)).toEqual([]);
});

test("vehicles under a limit are counted over time, each once however many events it has", () => {
  const steps = limitedSteps([
    { planned: [limited("05:00", "06:00"), limited("05:30", "05:45")] },
    { planned: [limited("05:30", "07:00")] },
    { planned: [] },
  ]);
  expect(steps.map(({ at: moment, count }) => [new Date(moment).toISOString().slice(11, 16), count])).toEqual(
    [
      ["05:00", 1],
      ["05:30", 2],
      ["06:00", 1],
      ["07:00", 0],
    ],
  );
});

test("a level of a site that only observes limits nothing", () => {
  const observed = { ...under("EV-1", 8), verdict: "observed" } as const;
  expect(sitePower([observed], {}, noneAway)).toMatchObject({
    allowed: 0,
    limited: 0,
    limits: [],
    free: 11_040,
  });
});
