import { expect, test } from "vitest";
import { configured, mistakesIn } from "../../support/aConfiguration.ts";

test("without a section control, the defaults are as documented", () => {
  expect(configured({}).control).toEqual({
    mode: "drive",
    powerUnit: "kW",
    priority: "lower",
    priorityZero: "highest",
    ties: "newest",
    randomizedEnd: "shift",
    untargeted: "ignore",
    vehicleTargetTypes: ["vehicle"],
    releaseRamp: null,
    refresh: 60_000,
    silentAfter: 300_000,
    verdict: { ramp: 30_000, amperes: 0.5, percent: 5 },
    onObserve: "release",
    onStop: "keep",
  });
});

test("target types are compared without regard to case", () => {
  expect(
    configured({ control: { vehicleTargetTypes: ["Vehicle", "RESOURCE"] } }).control.vehicleTargetTypes,
  ).toEqual(["vehicle", "resource"]);
});

test.each([
  ["release", { kind: "release" }],
  ["pause", { kind: "pause" }],
  [{ current: 10 }, { kind: "current", amperes: 10 }],
  [{ power: 3.7 }, { kind: "power", watts: 3700 }],
])("at the end of an event: %j", (atEnd, value) => {
  expect(configured({ control: { atEnd } }).chargers[0]?.atEnd).toEqual(value);
});

test.each([
  ["mode", "off"],
  ["units", { current: "mA" }],
  ["units", { power: "MW" }],
  ["priority", 1],
  ["ties", "oldest"],
  ["atEnd", { current: 10, power: 7 }],
  ["atEnd", 10],
  ["refresh", "500ms"],
  ["refresh", "2h"],
  ["minInterval", 5],
  ["deadband", -1],
])("control with %s %j is refused", (key, value) => {
  expect(mistakesIn({ control: { [key]: value } })).toHaveLength(1);
});

const ramp = (releaseRamp: object) => configured({ control: { releaseRamp } }).control.releaseRamp;

test("a ramp is in amperes or kilowatts per minute", () => {
  expect(ramp({ current: 64 })).toEqual({ unit: "A", perMinute: 64 });
  expect(ramp({ power: 100 })).toEqual({ unit: "W", perMinute: 100_000 });
});
