import { describe, expect, test } from "vitest";
import { aTrial } from "../aTrial.ts";

const PREFIX = "SmartEVSE/4711";
const params = { prefix: PREFIX, mode: "Smart" };
const smartevse = aTrial("smartevse", params);
const override = `${PREFIX}/Set/CurrentOverride`;

describe("a SmartEVSE", () => {
  test.each([
    [6, "60"],
    [8.03, "80"],
    [13.7, "137"],
    [15.99, "159"],
    [32, "160"],
  ])("receives %d A as %s dA, and no more than it accepts", (currentA, payload) => {
    expect(smartevse.told("setCurrent", { currentA })).toEqual([`${override} ${payload}`]);
  });

  test("takes more where its MaxCurrent is configured", () => {
    const large = aTrial("smartevse", { ...params, maxCurrentA: 32 });
    expect(large.told("setCurrent", { currentA: 40 })).toEqual([`${override} 320`]);
  });

  test.each([0, 0.3, 5.9, -1])(
    "is paused by its mode at %d A, since 0 would give control back",
    (currentA) => {
      expect(smartevse.told("setCurrent", { currentA })).toEqual([`${PREFIX}/Set/Mode Pause`]);
    },
  );

  test("resumes with its mode first, as an override counts in no other", () => {
    expect(smartevse.told("resume", { lastCurrentA: 13.7 })).toEqual([
      `${PREFIX}/Set/Mode Smart`,
      `${override} 137`,
    ]);
  });

  test("is acquired by its mode and released by 0", () => {
    expect(smartevse.told("acquire")).toEqual([`${PREFIX}/Set/Mode Smart`]);
    expect(smartevse.told("release")).toEqual([`${override} 0`]);
    expect(aTrial("smartevse", { prefix: PREFIX }).told("acquire")).toEqual([`${PREFIX}/Set/Mode Normal`]);
    expect(aTrial("smartevse", { prefix: PREFIX, mode: "Solar" }).answer("pause")).toEqual({
      error: expect.stringContaining("Normal, Smart"),
    });
  });

  test("reports plain values: W, Wh and dA", () => {
    const fresh = aTrial("smartevse", params);
    expect(fresh.means(`${PREFIX}/EVChargePower`, "11040")).toEqual({ powerW: 11_040 });
    expect(fresh.means(`${PREFIX}/EVImportActiveEnergy`, "123456")).toEqual({ energyWh: 123_456 });
    expect(fresh.means(`${PREFIX}/EVEnergyCharged`, "1200")).toEqual({ sessionEnergyWh: 1200 });
    expect(fresh.means(`${PREFIX}/EVCurrentL1`, "137")).toEqual({ currentsA: [13.7, null, null] });
    expect(fresh.means(`${PREFIX}/EVCurrentL2`, "136")).toEqual({ currentsA: [13.7, 13.6, null] });
    expect(fresh.means(`${PREFIX}/EVCurrentL3`, "0")).toEqual({ currentsA: [13.7, 13.6, 0] });
    expect(fresh.means(`${PREFIX}/ChargeCurrent`, "137")).toEqual({ limitA: 13.7 });
    expect(fresh.means(`${PREFIX}/ChargeCurrentOverride`, "137")).toEqual({ requestedA: 13.7 });
    expect(fresh.means(`${PREFIX}/ChargeCurrentOverride`, "0")).toEqual({ requestedA: null });
    expect(fresh.means(`${PREFIX}/NrOfPhases`, "3")).toEqual({ phases: 3 });
  });

  test.each([
    ["Ready to Charge", "unplugged"],
    ["Connected to EV", "connected"],
    ["Activate", "connected"],
    ["Charging", "charging"],
    ["D", "charging"],
    ["Charging Stopped", "paused"],
    ["Stop Charging", "paused"],
    ["Modem Request", "connected"],
    ["Something new", "unknown"],
  ])("reads the state %s as %s", (payload, state) => {
    expect(smartevse.means(`${PREFIX}/State`, payload)).toMatchObject({ state });
  });

  test("reports plug, access, mode and fault as names", () => {
    expect(smartevse.means(`${PREFIX}/EVPlugState`, "Connected")).toEqual({ plugged: true });
    expect(smartevse.means(`${PREFIX}/EVPlugState`, "Disconnected")).toEqual({ plugged: false });
    expect(smartevse.means(`${PREFIX}/Access`, "Pause")).toEqual({ paused: true });
    expect(smartevse.means(`${PREFIX}/Access`, "Allow")).toEqual({ paused: false });
    expect(smartevse.means(`${PREFIX}/Mode`, "Pause")).toEqual({ paused: true });
    expect(smartevse.means(`${PREFIX}/Mode`, "Smart")).toEqual({ paused: false });
    expect(smartevse.means(`${PREFIX}/Error`, "None")).toEqual({ error: false });
    expect(smartevse.means(`${PREFIX}/Error`, "No Power Available")).toEqual({ error: false });
    expect(smartevse.means(`${PREFIX}/Error`, "Temperature High")).toEqual({ error: true });
    expect(smartevse.means(`${PREFIX}/Error`, "null")).toEqual({ error: null });
    expect(smartevse.means(`${PREFIX}/Error`, "None")).toEqual({ error: false });
    expect(smartevse.means(`${PREFIX}/connected`, "offline")).toEqual({ online: false });
  });

  test("with a modem reports the state of charge, and switches phases by 1 and 3", () => {
    expect(smartevse.means(`${PREFIX}/EVComputedSoC`, "71")).toEqual({ socPct: 71 });
    expect(smartevse.means(`${PREFIX}/EVComputedSoC`, "-1")).toEqual({ socPct: null });
    expect([1, 3].map((phases) => smartevse.told("setPhases", { phases })[0])).toEqual([
      `${PREFIX}/Set/EnableC2 1`,
      `${PREFIX}/Set/EnableC2 3`,
    ]);
  });

  test("names the vehicle by its modem, or by the card", () => {
    expect(smartevse.means(`${PREFIX}/EVCCID`, "02aabb000001")).toEqual({
      vehicleId: "02aabb000001",
      vehicleIdKind: "evccid",
    });
    expect(smartevse.means(`${PREFIX}/RFIDLastRead`, "04A2B3C4")).toEqual({
      vehicleId: "04A2B3C4",
      vehicleIdKind: "rfid",
    });
  });
});
