import { expect, test } from "vitest";

import { departureView, type Expected, neededHours } from "../../src/departures/board.ts";
import { NOT_PLUGGED_IN } from "../../src/departures/forecast.ts";
import { missedFact, ShortfallWatch } from "../../src/departures/watch.ts";
import type { AlarmFact } from "../../src/domain/alarm.ts";
import { after, instant, iso, millis, minutes } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { aVehicle } from "../support/aCharger.ts";

const NOW = instant(Date.parse("2026-11-23T01:00:00Z"));
const later = (mins: number) => after(NOW, minutes(mins));

const NOTHING = {
  charger: null,
  isPluggedIn: false,
  deliveredWh: null,
  soc: null,
  powerW: null,
  remainingWh: null,
  missing: [],
  isFinished: false,
  obstacle: null,
  drawsW: null,
  mostW: 20_000,
  capacityWh: null,
  bands: [],
};

/** A bus that leaves in four hours and will lack 5 kWh. */
const anExpected = (changes: Partial<Expected> = {}): Expected => ({
  state: "short",
  readyAt: null,
  shortWh: 5_000,
  cause: "event",
  because: "5 kWh short",
  missing: [],
  assumed: [],
  rampWait: millis(0),
  vehicle: aVehicle(),
  departure: {
    vehicle: aVehicle().id,
    at: later(240),
    need: { kind: "energy", wh: 40_000 },
    source: "weekly",
    by: null,
  },
  measured: NOTHING,
  stretches: [],
  guardFrom: null,
  computedAt: NOW,
  ...changes,
});

function alarmsOf(watch: ShortfallWatch, minute: number): readonly string[] {
  const found: AlarmFact[] = [];
  runToEnd(watch.facts(later(minute), iso, found));
  return found.map(({ message, action }) => `${message} / ${action}`);
}

test("an alarm that was open before the start is open at once while the vehicle is still short", () => {
  const watch = new ShortfallWatch(["veh-214"]);
  watch.note(anExpected(), NOW);
  expect(alarmsOf(watch, 0)).toHaveLength(1);
  const other = new ShortfallWatch(["veh-214"]);
  other.note(anExpected({ state: "onTime", shortWh: null, cause: null }), NOW);
  expect(alarmsOf(other, 0)).toEqual([]);
});

test("an alarm that was open before the start stays open though the charger has not reported yet", () => {
  const unknown = anExpected({
    state: "unknown",
    shortWh: null,
    cause: null,
    missing: ["telemetry of bay-01"],
  });
  const watch = new ShortfallWatch(["veh-214"]);
  watch.note(unknown, NOW);
  expect(alarmsOf(watch, 0)).toEqual([]);
  watch.note(anExpected(), later(1));
  expect(alarmsOf(watch, 1)).toHaveLength(1);
  const other = new ShortfallWatch([]);
  other.note(unknown, NOW);
  other.note(anExpected(), later(1));
  expect(alarmsOf(other, 1)).toEqual([]);
});

test("the sentence stays while the shortfall changes by little, and follows one that is notably another", () => {
  const watch = new ShortfallWatch(["veh-214"]);
  const noted = (shortWh: number | null, minute: number) => {
    watch.note(anExpected({ shortWh, because: `${shortWh} Wh short` }), later(minute));
    return alarmsOf(watch, minute)[0]?.split(": ").at(-1)?.split(" / ")[0];
  };
  expect(noted(5_000, 0)).toBe("5000 Wh short");
  expect(noted(5_100, 1)).toBe("5000 Wh short");
  expect(noted(9_000, 2)).toBe("9000 Wh short");
  expect(noted(null, 3)).toBe("null Wh short");
  expect(noted(100, 4)).toBe("100 Wh short");
});

test.each([
  ["event", '"Charge now" on its page frees it from the event'],
  ["hold", '"End override" on its page'],
  ["charger", "see what the charger shows"],
  ["vehicle", "see what the vehicle shows"],
  ["time", "plug it in at a stronger charger"],
  ["notPluggedIn", "plug it in"],
  [null, "plug it in at a stronger charger"],
] as const)("a shortfall by %s names the remedy", (cause, remedy) => {
  const watch = new ShortfallWatch(["veh-214"]);
  watch.note(anExpected({ cause }), NOW);
  expect(alarmsOf(watch, 0)).toEqual([expect.stringContaining(` / ${remedy}`)]);
});

test("a vehicle that has no departure any more has no alarm", () => {
  const watch = new ShortfallWatch(["veh-214"]);
  watch.note(anExpected(), NOW);
  watch.forget(aVehicle().id);
  expect(alarmsOf(watch, 0)).toEqual([]);
});

test("a vehicle that is missed is reported with its charging time, also below an hour", () => {
  const absent = anExpected({
    state: "unknown",
    measured: { ...NOTHING, missing: [NOT_PLUGGED_IN] },
  });
  const missed = (hours: number | null, minute: number) =>
    missedFact(absent, hours, iso, later(minute))?.message.split(", and ")[1];
  expect(missed(0.5, 200)).toBe("charging takes 30 min");
  expect(missed(2, 200)).toBe("charging takes 2 h 0 min");
  expect(missed(0.5, 0)).toBeUndefined();
  expect(missedFact(absent, 5, iso, later(240))).toBeNull();
});

test("the time that a vehicle needs is known with an energy, or with a battery", () => {
  const soc = anExpected();
  const ofBattery = { ...soc, departure: { ...soc.departure, need: { kind: "soc", percent: 50 } as const } };
  expect(neededHours(soc, null)).toBe(2);
  expect(neededHours(ofBattery, 200_000)).toBe(5);
  expect(neededHours(ofBattery, null)).toBeNull();
  expect(neededHours({ ...soc, measured: { ...NOTHING, mostW: 0 } }, null)).toBeNull();
});

test("a vehicle at no charger is listed without one", () => {
  expect(departureView(anExpected(), NOW)).toMatchObject({
    charger: null,
    leavesInS: 14_400,
    short: { energyWh: 5_000 },
    readyAt: null,
    guardFrom: null,
  });
});
