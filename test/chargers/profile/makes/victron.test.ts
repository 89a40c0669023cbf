import { describe, expect, test } from "vitest";
import { aTrial, profileNamed } from "../aTrial.ts";

const station = aTrial("victron-evcs", { portalId: "c0619ab1" });
const W = "W/c0619ab1/evcharger/40";
const N = "N/c0619ab1/evcharger/40";

describe("a Victron charging station", () => {
  test("receives whole amperes in its envelope", () => {
    expect(station.told("setCurrent", { currentA: 13.7 })).toEqual([`${W}/SetCurrent {"value":13}`]);
    expect(station.told("setCurrent", { currentA: 5.9 })).toEqual([`${W}/StartStop {"value":0}`]);
  });

  test("is put in manual mode, started and stopped, and given back to its automatic mode", () => {
    expect(station.told("acquire")).toEqual([`${W}/Mode {"value":0}`]);
    expect(station.told("pause")).toEqual([`${W}/StartStop {"value":0}`]);
    expect(station.told("resume", { lastCurrentA: 13 })).toEqual([`${W}/StartStop {"value":1}`]);
    expect(station.told("release")).toEqual([`${W}/Mode {"value":1}`]);
  });

  test("has another instance where the configuration names one", () => {
    const second = aTrial("victron-evcs", { portalId: "c0619ab1", instance: 41 });
    expect(second.told("pause")).toEqual([`W/c0619ab1/evcharger/41/StartStop {"value":0}`]);
    expect(aTrial("victron-evcs", { portalId: "x", instance: "+" }).answer("pause")).toHaveProperty("error");
  });

  test("is kept publishing by a keepalive, with everything after a connection", () => {
    expect(profileNamed("victron-evcs").keepalive).toEqual([
      {
        every: 30_000,
        topic: "R/{portalId}/keepalive",
        first: "",
        json: { "keepalive-options": ["suppress-republish"] },
        asksOnly: true,
      },
    ]);
  });

  test("reports values in its envelope, unknown ones as null or by an empty payload", () => {
    expect(station.means(`${N}/Ac/Power`, { value: 7360 })).toEqual({ powerW: 7360 });
    expect(station.means(`${N}/Ac/Power`, { value: null })).toEqual({ powerW: null });
    expect(station.means(`${N}/Ac/Power`, "")).toEqual({ powerW: null });
    expect(station.means(`${N}/Current`, { value: 10.6 })).toEqual({ currentA: 10.6 });
    expect(station.means(`${N}/Ac/Energy/Forward`, { value: 123.456 })).toEqual({ energyWh: 123_456 });
    expect(station.means(`${N}/Session/Energy`, { value: 1.2 })).toEqual({ sessionEnergyWh: 1200 });
    expect(station.means(`${N}/SetCurrent`, { value: 13 })).toEqual({ requestedA: 13 });
    expect(station.means(`${N}/Connected`, { value: 1 })).toEqual({ online: true });
    expect(station.means("N/c0619ab1/heartbeat", { value: 1 })).toEqual({ online: true });
  });

  test.each([
    [0, "unplugged"],
    [1, "connected"],
    [2, "charging"],
    [3, "finished"],
    [4, "paused"],
    [5, "connected"],
    [6, "paused"],
    [7, "paused"],
    [8, "error"],
    [20, "error"],
    [24, "paused"],
    [99, "unknown"],
  ])("reads the status %i as %s", (value, state) => {
    expect(station.means(`${N}/Status`, { value })).toMatchObject({ state });
  });

  test.each([4, 6, 7, 24])("the status %i is that of a vehicle that is plugged in", (value) => {
    expect(station.means(`${N}/Status`, { value })).toEqual({
      state: "paused",
      charging: false,
      paused: true,
      plugged: true,
    });
  });
});
