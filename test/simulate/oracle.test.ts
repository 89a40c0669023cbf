import { expect, test } from "vitest";

import { allowed, mayKeep, shareOf, shouldHold, type Site, type TrueEvent, vehicleOn } from "./oracle.ts";
import { HOUR, MINUTE, type PlannedCharger, type PlannedEvent } from "./plan.ts";

const bay: PlannedCharger = { id: "bay-01", maxCurrent: 32, belowMinimum: "pause", phases: 3, tells: true };
const bus = { id: "v1", charger: "bay-01", maxCurrent: 20 };

const site: Site = {
  chargers: [bay, { ...bay, id: "bay-02" }],
  vehicles: [bus, { id: "rover", charger: null, maxCurrent: null }],
  knobs: {
    priority: "lower",
    priorityZero: "highest",
    ties: "newest",
    randomizedEnd: "shift",
    pollEvery: MINUTE,
    reports: false,
  },
  siteKey: Buffer.alloc(32, 7),
  midnight: Date.parse("2026-11-21T00:00:00Z"),
  zone: "UTC",
  writtenIn: "UTC",
};

const anEvent = (changes: Partial<PlannedEvent> = {}, revised = 0): TrueEvent => ({
  plan: {
    id: "E1",
    start: 8 * HOUR,
    duration: HOUR,
    spread: 0,
    priority: 1,
    ask: { kind: "current", amperes: 10 },
    vehicles: ["v1"],
    reports: [],
    ...changes,
  },
  revised,
  created: 0,
});

const at = (hours: number): number => site.midnight + hours * HOUR;
const kept = (...pairs: [string, string | null][]) => mayKeep(bay, new Map(pairs), site)?.id ?? null;
const told = (...pairs: [string, string | null][]) => vehicleOn(bay, new Map(pairs), site)?.id ?? null;
const holds = (events: readonly TrueEvent[], when: number) =>
  shouldHold(bay, bus, events, site, when, (event, vehicle) => shareOf(event, vehicle, site));

test("an event holds from its start to its end, and not at its end", () => {
  const event = [anEvent()];
  expect([at(8) - 1, at(8), at(9) - 1, at(9)].map((when) => holds(event, when).kind)).toEqual([
    "free",
    "current",
    "current",
    "free",
  ]);
});

test("a spread event starts within its spread and lasts its full duration", () => {
  const { from = 0, until = 0 } = shareOf(anEvent({ spread: 10 * MINUTE }), "v1", site) ?? {};
  expect(from).toBeGreaterThan(at(8));
  expect(from).toBeLessThanOrEqual(at(8) + 10 * MINUTE);
  expect(until - from).toBe(HOUR);
});

test("the lower number wins, and of equals the newer", () => {
  const urgent = anEvent({ id: "E0", priority: 0, ask: { kind: "current", amperes: 8 } });
  const newer = anEvent({ id: "E2", ask: { kind: "current", amperes: 12 } }, 5);
  expect(holds([anEvent(), newer], at(8))).toEqual({ kind: "current", value: 12 });
  expect(holds([anEvent(), urgent, newer], at(8))).toEqual({ kind: "current", value: 8 });
});

test("charger and vehicle bound a level, and too little is a pause", () => {
  expect(allowed({ kind: "current", amperes: 40 }, bay, bus)).toEqual({ kind: "current", value: 20 });
  expect(allowed({ kind: "power", kilowatts: 99 }, bay, bus)).toEqual({ kind: "power", value: 13_800 });
  expect(allowed({ kind: "current", amperes: 5.9 }, bay, bus)).toEqual({ kind: "pause" });
  expect(allowed({ kind: "power", kilowatts: 1 }, { ...bay, belowMinimum: "hold" }, bus)).toEqual({
    kind: "power",
    value: 4140,
  });
});

test("a vehicle reported elsewhere is not at home, and an unknown name is no vehicle of the site", () => {
  expect(told(["bay-01", null], ["bay-02", null])).toBe("v1");
  expect(told(["bay-01", null], ["bay-02", "v1"])).toBeNull();
  expect(told(["bay-01", "rover"], ["bay-02", null])).toBe("rover");
  expect(told(["bay-01", "stranger"], ["bay-02", null])).toBeNull();
  expect([kept(["bay-01", null], ["bay-02", null]), kept(["bay-01", null], ["bay-02", "v1"])]).toEqual([
    null,
    "v1",
  ]);
  expect(kept(["bay-01", "stranger"], ["bay-02", "v1"])).toBeNull();
});
