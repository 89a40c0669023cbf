import { expect, test } from "vitest";
import {
  type Desired,
  formatLevel,
  formatRecorded,
  levelOnRecord,
  levelOf,
  type LevelView,
  onSamePhases,
  parseLevel,
  valueOf,
  viewOf,
} from "../../src/domain/setpoint.ts";
import { amperes, instant, watts } from "../../src/domain/units.ts";

test("every level is shown with its unit, for people and for programs", () => {
  const all: Desired[] = [
    { kind: "current", amperes: amperes(13.7) },
    { kind: "power", watts: watts(11_040) },
    { kind: "pause" },
    { kind: "release" },
  ];
  expect(all.map(formatLevel)).toEqual(["13.7 A", "11.04 kW", "pause", "release"]);
  expect(all.map(levelOnRecord)).toEqual(["13.7 A", "11040 W", "pause", "release"]);
  expect(all.map(valueOf)).toEqual([
    { value: 13.7, unit: "A" },
    { value: 11_040, unit: "W" },
    { value: null, unit: null },
    { value: null, unit: null },
  ]);
});

test("a level is read from its text and written to the API, both ways", () => {
  const all: readonly [string, LevelView][] = [
    ["13.7 A", { currentA: 13.7 }],
    ["-5000 W", { powerW: -5000 }],
    ["pause", { pause: true }],
    ["release", { release: true }],
  ];
  for (const [text, view] of all) {
    expect(parseLevel(text)).toEqual(view);
    expect(levelOnRecord(levelOf(view))).toBe(text);
    expect(viewOf(levelOf(view))).toEqual(view);
  }
  expect(parseLevel("10 A on 1 phase")).toEqual({ currentA: 10 });
  expect(parseLevel("1 phase")).toBeNull();
});

test("a power on record reads in kW, exact to the watt, with its phases", () => {
  const texts = ["7383 W on 3 phases", "-5000 W", "0 W", "-0.5 W", "16 A", "pause", "1 phase"];
  expect(texts.map(formatRecorded)).toEqual([
    "7.383 kW on 3 phases",
    "-5 kW",
    "0 kW",
    "0 kW",
    "16 A",
    "pause",
    "1 phase",
  ]);
});

test("switched phases are shown, and a setpoint without phases keeps them", () => {
  const phases = { count: 1, since: instant(0), chargingSince: null } as const;
  const ten = { kind: "current", amperes: amperes(10) } as const;
  const pause: Desired = { kind: "pause" };
  const one: Desired = { kind: "pause", phases };
  expect(formatLevel(onSamePhases(ten, one))).toBe("10 A on 1 phase");
  expect(formatLevel({ kind: "pause", phases: { ...phases, count: 3 } })).toBe("pause on 3 phases");
  expect(onSamePhases(pause, one)).toEqual(one);
  expect(onSamePhases(pause, null)).toEqual(pause);
  expect(onSamePhases(pause, ten)).toEqual(pause);
  expect(onSamePhases({ kind: "release" }, one)).toEqual({ kind: "release" });
  const three: Desired = { ...ten, phases: { ...phases, count: 3 } };
  expect(onSamePhases(three, one)).toEqual(three);
});
