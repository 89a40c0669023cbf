import { expect, test } from "vitest";

import { effectLine, readLevel, readUntil, wantedIn } from "../../../src/cli/commands/hold.ts";
import { at } from "../../support/anEvent.ts";

test.each([
  ["16A", { currentA: 16 }],
  ["13.5 a", { currentA: 13.5 }],
  ["7kW", { powerW: 7000 }],
  ["7000W", { powerW: 7000 }],
  ["Pause", { pause: true }],
  ["16", null],
  ["-6A", null],
  ["0A", null],
  ["0.0 kW", null],
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
  ["0kWh", null],
])("the end %s is read as %j: a time that has passed today is tomorrow's", (text, until) =>
  expect(readUntil(text, "UTC", at("05:00"))).toEqual(until),
);

test("each missing or contradicting option of a hold is named, in the order in which a person types them", () => {
  const options = { site: false, exempt: false, preview: false, json: false };
  expect(wantedIn(undefined, options)).toContain("hold what?");
  expect(wantedIn("cp1", { ...options, site: true })).toContain("hold what?");
  expect(wantedIn("cp1", options)).toContain("either --exempt, or --level");
  expect(wantedIn("cp1", { ...options, exempt: true, level: "16A" })).toContain("either --exempt");
  expect(wantedIn("cp1", { ...options, level: "16" })).toBe(
    "--level 16: a level is 16A, 7kW, 7000W or pause",
  );
  expect(wantedIn("cp1", { ...options, level: "16A" })).toContain("--until is missing");
  expect(wantedIn("cp1", { ...options, level: "16A", until: "events", reason: " " })).toContain("--reason");
  const given = { until: "events", reason: "leaves early" };
  expect(wantedIn("cp1", { ...options, ...given, level: "16A" })).toEqual({
    level: { currentA: 16 },
    ...given,
  });
  expect(wantedIn(undefined, { ...options, ...given, site: true, exempt: true })).toEqual(given);
});

test("a person who holds a level that the charger cannot give reads what it gets instead, and why", () => {
  const effect = {
    charger: "bay-03",
    vehicle: "veh-3",
    level: { pause: true },
    applies: true,
    limits: ["4 kW asked, pause allowed"],
    overrules: ["EV-1"],
    waits: null,
    verdict: "followed",
  };
  expect(effectLine(effect)).toBe(
    "bay-03 (veh-3): pause (4 kW asked, pause allowed), instead of EV-1, followed",
  );
  const yielding = { ...effect, vehicle: null, level: { release: true }, applies: false };
  expect(effectLine({ ...yielding, limits: [], overrules: [], waits: "minInterval" })).toBe(
    "bay-03: its own default, by another claim, followed; waits: minInterval",
  );
});
