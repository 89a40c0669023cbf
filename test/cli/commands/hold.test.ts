import { expect, test } from "vitest";

import { readLevel, readUntil } from "../../../src/cli/commands/hold.ts";
import { at } from "../../support/anEvent.ts";

test.each([
  ["16A", { currentA: 16 }],
  ["13.5 a", { currentA: 13.5 }],
  ["7kW", { powerW: 7000 }],
  ["7000W", { powerW: 7000 }],
  ["Pause", { pause: true }],
  ["16", null],
  ["-6A", null],
])("the level %s is read as %j", (text, level) => expect(readLevel(text)).toEqual(level));

test.each([
  ["05:40", { at: "2026-11-21T05:40:00.000Z" }],
  ["04:59", { at: "2026-11-22T04:59:00.000Z" }],
  ["2026-11-21T08:00+01:00", { at: "2026-11-21T07:00:00.000Z" }],
  ["2026-11-20T08:00", { at: "2026-11-20T08:00:00.000Z" }],
  ["unplug", { unplugged: true }],
  ["18kWh", { energyWh: 18_000 }],
  ["500 Wh", { energyWh: 500 }],
  ["events", { events: true }],
  ["soon", null],
])("the end %s is read as %j: a time that has passed today is tomorrow's", (text, until) =>
  expect(readUntil(text, "UTC", at("05:00"))).toEqual(until),
);
