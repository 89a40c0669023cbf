import { expect, test } from "vitest";
import { type Desired, inWords, valueOf } from "../../../src/core/control/setpoint.ts";
import { amperes, watts } from "../../../src/core/units.ts";

test("every level is said with its unit, for people and for programs", () => {
  const all: Desired[] = [
    { kind: "current", amperes: amperes(13.7) },
    { kind: "power", watts: watts(11_040) },
    { kind: "pause" },
    { kind: "release" },
  ];
  expect(all.map(inWords)).toEqual(["13.7 A", "11040 W", "pause", "release"]);
  expect(all.map(valueOf)).toEqual([
    { value: 13.7, unit: "A" },
    { value: 11_040, unit: "W" },
    { value: null, unit: null },
    { value: null, unit: null },
  ]);
});
