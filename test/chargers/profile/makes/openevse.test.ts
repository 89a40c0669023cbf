import { describe, expect, test } from "vitest";

import { compileTelemetry } from "../../../../src/chargers/profile/telemetryMap.ts";
import { aTrial, boundTo } from "../aTrial.ts";

const BASE = "emon/openevse-a7d4";

describe.each([
  ["openevse-override", "override", "clear", ',"auto_release":false'],
  ["openevse-claim", "claim", "release", ""],
])("%s", (profile, door, release, keeps) => {
  const openevse = aTrial(profile, { base: BASE });

  test("sends the whole object each time, because the gateway merges", () => {
    const full = `${BASE}/${door}/set {"state":"active","charge_current":13${keeps}}`;
    expect(openevse.told("setCurrent", { currentA: 13.7 })).toEqual([full]);
    expect(openevse.told("resume", { lastCurrentA: 13.7 })).toEqual([full]);
  });

  test("pauses what would be clamped up to the minimum", () => {
    const disabled = `${BASE}/${door}/set {"state":"disabled"${keeps}}`;
    expect(openevse.told("pause")).toEqual([disabled]);
    for (const currentA of [0, 5.9]) expect(openevse.told("setCurrent", { currentA })).toEqual([disabled]);
  });

  test("gives control back with one plain text", () => {
    expect(openevse.told("release")).toEqual([`${BASE}/${door}/set ${release}`]);
  });

  test("has no phases, and 32 A unless its own maximum is known", () => {
    expect(openevse.answer("setPhases", { phases: 1 })).toEqual({ error: expect.any(String) });
    expect(openevse.json("setCurrent", { currentA: 63 })).toMatchObject({ charge_current: 32 });
    const large = aTrial(profile, { base: BASE, maxCurrentA: 48 });
    expect(large.json("setCurrent", { currentA: 63 })).toMatchObject({ charge_current: 48 });
  });

  test("reports plain numbers: mA, V, W, Wh, kWh", () => {
    expect(openevse.means(`${BASE}/amp`, "15900")).toEqual({ currentA: 15.9 });
    expect(openevse.means(`${BASE}/voltage`, "231.5")).toEqual({ voltagesV: [231.5] });
    expect(openevse.means(`${BASE}/power`, "3680")).toEqual({ powerW: 3680 });
    expect(openevse.means(`${BASE}/session_energy`, "1200")).toEqual({ sessionEnergyWh: 1200 });
    expect(openevse.means(`${BASE}/total_energy`, "123.456")).toEqual({ energyWh: 123_456 });
  });

  test("reports energy in other units on older firmware", () => {
    expect(openevse.means(`${BASE}/wattsec`, "3600000")).toEqual({ sessionEnergyWh: 1000 });
    expect(openevse.means(`${BASE}/watthour`, "123456")).toEqual({ energyWh: 123_456 });
  });

  test("confirms by what it advertises and by what it repeats", () => {
    expect(openevse.means(`${BASE}/pilot`, "13")).toEqual({ limitA: 13 });
    expect(openevse.means(`${BASE}/${door}`, { state: "active", charge_current: 13 })).toEqual({
      requestedA: 13,
    });
    expect(openevse.means(`${BASE}/${door}`, { state: "null" })).toEqual({ requestedA: null });
  });

  test.each([
    ["0", { state: "unknown" }],
    ["1", { state: "unplugged", plugged: false, charging: false }],
    ["2", { state: "connected", plugged: true, charging: false }],
    ["3", { state: "charging", plugged: true, charging: true, paused: false }],
    ["4", { state: "error", error: true }],
    ["11", { state: "error", error: true }],
    ["254", { state: "paused", paused: true, charging: false }],
    ["255", { state: "paused", paused: true, charging: false }],
  ])("reads state %s, and of a sleeping one not whether a vehicle is there", (payload, means) => {
    expect(openevse.means(`${BASE}/state`, payload)).toEqual(means);
  });

  test("knows the vehicle from vehicle, the session from the tag", () => {
    expect(openevse.means(`${BASE}/vehicle`, "1")).toEqual({ plugged: true });
    expect(openevse.means(`${BASE}/vehicle`, "0")).toEqual({ plugged: false });
    expect(openevse.means(`${BASE}/rfid_auth`, "04A2B3C4")).toEqual({
      vehicleId: "04A2B3C4",
      vehicleIdKind: "rfid",
    });
    expect(openevse.means(`${BASE}/rfid_auth`, "")).toEqual({ vehicleId: null });
    expect(openevse.means(`${BASE}/status`, "disabled")).toEqual({ paused: true });
    expect(openevse.means(`${BASE}/evse_connected`, "0")).toEqual({ online: false });
  });

  test("is there or gone by its last will, on the topic that its base or a parameter names", () => {
    const gone = { state: "disconnected", mqtt: BASE };
    expect(openevse.means("openevse/announce/a7d4", gone)).toEqual({ online: false });
    expect(openevse.means("openevse/announce/a7d4", { ...gone, state: "connected" })).toEqual({
      online: true,
    });
    const named = aTrial(profile, { base: "garage", announce: "55ad" });
    expect(named.means("openevse/announce/55ad", gone)).toEqual({ online: false });
    expect(named.means("openevse/announce/a7d4", gone)).toEqual({});
    expect(
      compileTelemetry(boundTo(profile, { base: "garage" })).filters.filter((topic) =>
        topic.includes("announce"),
      ),
    ).toEqual([]);
  });
});
