import { describe, expect, test } from "vitest";
import { aTrial } from "../aTrial.ts";

const params = { root: "evcc", id: 2, releaseMode: "smart" };
const evcc = aTrial("evcc", params);
const POINT = "evcc/loadpoints/2";

describe("evcc", () => {
  test("takes a limit with fractions", () => {
    expect(evcc.told("setCurrent", { currentA: 13.7 })).toEqual([`${POINT}/maxCurrent/set 13.7`]);
    expect(evcc.told("setCurrent", { currentA: 8.03 })).toEqual([`${POINT}/maxCurrent/set 8.03`]);
  });

  test("is switched off below the minimum that it would refuse", () => {
    for (const currentA of [0, 5.9])
      expect(evcc.told("setCurrent", { currentA })).toEqual([`${POINT}/mode/set off`]);
  });

  test("charges in mode now, and goes back to the mode that the site names", () => {
    expect(evcc.told("acquire")).toEqual([`${POINT}/mode/set now`]);
    expect(evcc.told("resume", { lastCurrentA: 13 })).toEqual([`${POINT}/mode/set now`]);
    expect(evcc.told("release")).toEqual([`${POINT}/mode/set smart`]);
    expect(aTrial("evcc", { id: 2 }).told("release")).toEqual([`${POINT}/mode/set pv`]);
  });

  test("counts its loadpoints from 1", () => {
    expect(aTrial("evcc", { id: 0 }).answer("pause")).toEqual({ error: expect.stringContaining("id is 0") });
  });

  test("switches phases", () => {
    expect(evcc.told("setPhases", { phases: 1 })).toEqual([`${POINT}/phasesConfigured/set 1`]);
  });

  test("reports plain values, phase by phase", () => {
    const fresh = aTrial("evcc", params);
    expect(fresh.means(`${POINT}/chargePower`, "11040")).toEqual({ powerW: 11_040 });
    for (const phase of [1, 2]) fresh.means(`${POINT}/chargeCurrents/l${phase}`, "16");
    expect(fresh.means(`${POINT}/chargeCurrents/l3`, "15.9")).toEqual({ currentsA: [16, 16, 15.9] });
    expect(fresh.means(`${POINT}/chargeVoltages/l1`, "230.1")).toEqual({ voltagesV: [230.1, null, null] });
    expect(fresh.means(`${POINT}/offeredCurrent`, "13.7")).toEqual({ limitA: 13.7 });
    expect(fresh.means(`${POINT}/maxCurrent`, "13.7")).toEqual({ requestedA: 13.7 });
    expect(fresh.means(`${POINT}/phasesActive`, "3")).toEqual({ phases: 3 });
    expect(fresh.means(`${POINT}/vehicleSoc`, "71.5")).toEqual({ socPct: 71.5 });
  });

  test("reports the energy of a session under two names, and the meter in one of two units", () => {
    expect(evcc.means(`${POINT}/sessionEnergy`, "1200")).toEqual({ sessionEnergyWh: 1200 });
    expect(evcc.means(`${POINT}/chargedEnergy`, "1200")).toEqual({ sessionEnergyWh: 1200 });
    expect(evcc.means(`${POINT}/chargeTotalImport`, "123.456")).toEqual({ energyWh: 123_456 });
    const documented = aTrial("evcc", { ...params, totalImport: "Wh" });
    expect(documented.means(`${POINT}/chargeTotalImport`, "123456")).toEqual({ energyWh: 123_456 });
  });

  test("reports whether a vehicle is plugged in, charges, and may charge", () => {
    expect(evcc.means(`${POINT}/connected`, "true")).toEqual({ plugged: true });
    expect(evcc.means(`${POINT}/charging`, "false")).toEqual({ charging: false });
    expect(evcc.means(`${POINT}/enabled`, "false")).toEqual({ paused: true });
    expect(evcc.means(`${POINT}/mode`, "off")).toEqual({ paused: true });
    expect(evcc.means(`${POINT}/mode`, "now")).toEqual({ paused: false });
    for (const nothing of ["nil", "null", "none", "-", ""])
      expect(evcc.means(`${POINT}/mode`, nothing)).toEqual({ paused: null });
    expect(evcc.means("evcc/status", "offline")).toEqual({ online: false });
  });

  test("reports a state of charge of 0 where there is none", () => {
    expect(evcc.means(`${POINT}/vehicleSoc`, "0")).toEqual({ socPct: null });
  });

  test("reports an unknown value as an empty payload", () => {
    for (const payload of ["", "nil", "null", "none", "-"])
      expect(evcc.means(`${POINT}/vehicleSoc`, payload)).toEqual({ socPct: null });
    expect(evcc.means(`${POINT}/vehicleIdentity`, "")).toEqual({ vehicleId: null });
  });

  test("names the vehicle by a card or an address, which differ in form", () => {
    expect(evcc.means(`${POINT}/vehicleIdentity`, "02:AA:BB:00:00:01")).toMatchObject({
      vehicleIdKind: "mac",
    });
    expect(evcc.means(`${POINT}/vehicleIdentity`, "04A2B3C4")).toMatchObject({ vehicleIdKind: "rfid" });
    expect(evcc.means(`${POINT}/vehicleName`, "bus-214")).toEqual({
      vehicleId: "bus-214",
      vehicleIdKind: "name",
    });
  });
});
