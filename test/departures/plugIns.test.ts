import { expect, test } from "vitest";

import {
  isUnplugged,
  PlugIns,
  sessionEnergy,
  sessionSoc,
  type Sighting,
} from "../../src/departures/plugIns.ts";
import type { PlugIn } from "../../src/domain/departure.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { chargerId, instant, vehicleId } from "../../src/domain/units.ts";

const bay = chargerId("bay-01");
const [bus, other] = [vehicleId("veh-214"), vehicleId("veh-215")];
const AT = instant(Date.parse("2026-11-23T01:00:00Z"));

const note = (
  plugIns: PlugIns,
  telemetry: Omit<Telemetry, "at">,
  vehicle: typeof bus | null = bus,
  { namedBy = null, unpluggedAt = null }: Partial<Pick<Sighting, "namedBy" | "unpluggedAt">> = {},
) => plugIns.note(bay, { vehicle, namedBy, telemetry: { at: AT, ...telemetry }, at: AT, unpluggedAt });
const energyOf = (plugIns: PlugIns, telemetry: Omit<Telemetry, "at">): number | null => {
  const pluggedIn = plugIns.at(bay);
  return pluggedIn === null ? null : sessionEnergy({ at: AT, ...telemetry }, pluggedIn);
};

test("the register at the plug-in is the last one without a vehicle", () => {
  const plugIns = new PlugIns();
  expect(note(plugIns, { state: "unplugged", energyWh: 5_000 }, null)).toBeUndefined();
  expect(plugIns.at(bay)).toBeNull();
  expect(note(plugIns, { state: "connected", energyWh: 5_001 })).toEqual({
    vehicle: bus,
    at: AT,
    energyWh: 5_000,
  });
  expect(energyOf(plugIns, { energyWh: 9_000 })).toBe(4_000);
  expect(note(plugIns, { state: "charging", energyWh: 9_000 })).toBeUndefined();
  expect(note(plugIns, { state: "unplugged", energyWh: 9_500 }, null)).toBeNull();
});

test("an unplug that is over before the next look begins a session, once", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged", energyWh: 5_000 }, null, { unpluggedAt: AT });
  note(plugIns, { state: "charging", energyWh: 5_000 }, bus, { unpluggedAt: AT });
  const again = instant(AT + 60_000);
  expect(note(plugIns, { state: "charging", energyWh: 9_000 }, bus, { unpluggedAt: again })).toMatchObject({
    energyWh: 9_000,
  });
  expect(note(plugIns, { state: "charging", energyWh: 9_400 }, bus, { unpluggedAt: again })).toBeUndefined();
  expect(energyOf(plugIns, { energyWh: 9_400 })).toBe(400);
});

test("an unplug from before the session, which the charger reports late, changes nothing", () => {
  const plugIns = new PlugIns();
  const early = { unpluggedAt: instant(AT - 120_000) };
  note(plugIns, { state: "unplugged", energyWh: 5_000 }, null, early);
  note(plugIns, { state: "charging", energyWh: 35_000 }, bus, early);
  const late = { unpluggedAt: instant(AT - 60_000) };
  expect(note(plugIns, { state: "charging", energyWh: 35_100 }, bus, late)).toBeUndefined();
  expect(energyOf(plugIns, { energyWh: 35_100 })).toBe(30_100);
});

test("a stored register that does not count for the vehicle is not renamed with it", () => {
  const plugIns = new PlugIns(new Map([[bay, { vehicle: bus, at: AT, energyWh: 5_000 }]]));
  note(plugIns, { state: "charging", energyWh: 9_000 }, other);
  const third = vehicleId("veh-216");
  expect(note(plugIns, { state: "charging", energyWh: 9_000 }, third, { namedBy: "person" })).toBeUndefined();
});

test("a stored register does not count for a vehicle that came after an unplug since the start", () => {
  const stored: PlugIn = { vehicle: null, at: AT, energyWh: 5_000 };
  const unpluggedAt = instant(AT + 60_000);
  const plugIns = new PlugIns(new Map([[bay, stored]]));
  note(plugIns, { state: "charging", energyWh: 9_000 }, null, { unpluggedAt });
  expect(energyOf(plugIns, { energyWh: 9_500 })).toBeNull();
  // The first message of the charger was a live one, and what it had kept came after it.
  const seen = new PlugIns(new Map([[bay, stored]]));
  note(seen, { state: "charging", energyWh: 9_000 }, null);
  expect(energyOf(seen, { energyWh: 9_500 })).toBe(4_500);
  note(seen, { state: "charging", energyWh: 9_000 }, null, { unpluggedAt });
  expect(energyOf(seen, { energyWh: 9_500 })).toBe(500);
});

test("a vehicle that was there before the start has an unknown register, unless it was stored", () => {
  const unknown = new PlugIns();
  expect(note(unknown, { state: "charging", energyWh: 9_000 })).toBeUndefined();
  expect(energyOf(unknown, { energyWh: 9_500 })).toBeNull();
  const stored: PlugIn = { vehicle: bus, at: AT, energyWh: 5_000 };
  const known = new PlugIns(new Map([[bay, stored]]));
  expect(note(known, { state: "charging", energyWh: 9_000 })).toBeUndefined();
  expect(energyOf(known, { energyWh: 9_500 })).toBe(4_500);
  expect(known.at(bay)?.since).toBe(AT);
});

test.each([
  ["another vehicle", other, 9_000],
  ["a register that started anew", bus, 100],
])("a stored register does not count for %s", (_what, vehicle, energyWh) => {
  const plugIns = new PlugIns(new Map([[bay, { vehicle: bus, at: AT, energyWh: 5_000 }]]));
  note(plugIns, { state: "charging", energyWh }, vehicle);
  expect(energyOf(plugIns, { energyWh: energyWh + 500 })).toBeNull();
});

test("a counter of the session counts without a register, and is not stored", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged", energyWh: 5_000 }, null);
  expect(note(plugIns, { state: "charging", energyWh: 5_000, sessionWh: 0 })).toBeUndefined();
  expect(energyOf(plugIns, { sessionWh: 1_200 })).toBe(1_200);
  expect(energyOf(plugIns, {})).toBeNull();
});

test("a vehicle that is identified later keeps its session, and another one begins its own", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged", energyWh: 5_000 }, null);
  note(plugIns, { state: "connected", energyWh: 5_000 }, null);
  note(plugIns, { state: "charging", energyWh: 6_000 }, bus);
  expect(energyOf(plugIns, { energyWh: 6_000 })).toBe(1_000);
  expect(note(plugIns, { state: "charging", energyWh: 7_000 }, other)).toEqual({
    vehicle: other,
    at: AT,
    energyWh: 7_000,
  });
  expect(energyOf(plugIns, { energyWh: 7_000 })).toBe(0);
  expect(energyOf(plugIns, { energyWh: 10 })).toBeNull();
});

test("a vehicle that a person names has the session from its beginning, and so has the one before once that is taken back", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged", energyWh: 5_000 }, null);
  note(plugIns, { state: "charging", energyWh: 5_000, soc: 40 });
  const named = note(plugIns, { state: "charging", energyWh: 7_000, soc: 42 }, other, { namedBy: "person" });
  expect(named).toEqual({ vehicle: other, at: AT, energyWh: 5_000 });
  expect(plugIns.at(bay)).toMatchObject({ vehicle: other, fromWh: 5_000, formerSoc: null });
  expect(note(plugIns, { state: "charging", energyWh: 7_500 }, other, { namedBy: "person" })).toBeUndefined();
  // After a restart as well.
  const restarted = new PlugIns(new Map(named === null || named === undefined ? [] : [[bay, named]]));
  note(restarted, { state: "charging", energyWh: 8_000 }, other, { namedBy: "person" });
  expect(energyOf(restarted, { energyWh: 8_000 })).toBe(3_000);
  expect(note(plugIns, { state: "charging", energyWh: 8_000 }, bus)).toMatchObject({ vehicle: bus });
  expect(energyOf(plugIns, { energyWh: 8_000 })).toBe(3_000);
  // A charger that tells is no correction: the vehicles were changed within one message.
  note(plugIns, { state: "charging", energyWh: 9_000 }, other, { namedBy: "person" });
  note(plugIns, { state: "charging", energyWh: 9_000 }, bus, { namedBy: "telemetry" });
  expect(energyOf(plugIns, { energyWh: 9_000 })).toBe(0);
});

test("a vehicle whose charger has no register has a session without energy", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged" }, null);
  expect(note(plugIns, { state: "charging" })).toBeUndefined();
  expect(energyOf(plugIns, { energyWh: 9_000 })).toBeNull();
  expect(plugIns.at(bay)).toMatchObject({ since: AT, fromWh: null });
});

test("a state of charge of the vehicle before does not count", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged", soc: 95 }, null);
  note(plugIns, { state: "charging", soc: 95 });
  const pluggedIn = plugIns.at(bay);
  if (pluggedIn === null) throw new Error("nothing is plugged in");
  expect(sessionSoc({ at: AT, soc: 95 }, pluggedIn)).toBeNull();
  expect(sessionSoc({ at: AT }, pluggedIn)).toBeNull();
  expect(sessionSoc({ at: AT, soc: 41 }, pluggedIn)).toBe(41);
});

test.each([255, 101, 100.1, -1, 1e300])("a state of charge of %d is not known", (soc) => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "charging" });
  const pluggedIn = plugIns.at(bay);
  if (pluggedIn === null) throw new Error("nothing is plugged in");
  expect(sessionSoc({ at: AT, soc }, pluggedIn)).toBeNull();
  expect([0, 100].map((possible) => sessionSoc({ at: AT, soc: possible }, pluggedIn))).toEqual([0, 100]);
});

test("more energy than any battery holds is an error of the meter, not a vehicle that is ready", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "unplugged", energyWh: 5_000 }, null);
  note(plugIns, { state: "charging", energyWh: 5_000 });
  expect(energyOf(plugIns, { energyWh: 1e300 })).toBeNull();
  expect(energyOf(plugIns, { sessionWh: 4_294_967_295 })).toBeNull();
  expect(energyOf(plugIns, { sessionWh: 10_000_000 })).toBe(10_000_000);
});

test("a charger without a state shows neither a vehicle nor its absence", () => {
  const plugIns = new PlugIns();
  expect([isUnplugged({ at: AT }), isUnplugged({ at: AT, state: "unknown" })]).toEqual([null, null]);
  expect(note(plugIns, { energyWh: 1 })).toBeUndefined();
  plugIns.noteDraw(bay, 3_000);
  expect(plugIns.at(bay)).toBeNull();
});

test("the power that a vehicle draws is kept until it is unplugged", () => {
  const plugIns = new PlugIns();
  note(plugIns, { state: "charging" });
  plugIns.noteDraw(bay, 3_000);
  plugIns.noteDraw(bay, 3_000);
  note(plugIns, { state: "charging" });
  expect(plugIns.at(bay)?.drawsW).toBe(3_000);
  note(plugIns, { state: "unplugged" }, null);
  note(plugIns, { state: "charging" });
  expect(plugIns.at(bay)?.drawsW).toBeNull();
});
