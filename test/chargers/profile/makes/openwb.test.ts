import { describe, expect, test } from "vitest";
import { aTrial, profileNamed } from "../aTrial.ts";

describe("an openWB 2 as a secondary", () => {
  const params = { duo: 1, parentIp: "10.0.0.5", cpNumber: 3 };
  const box = aTrial("openwb-secondary", params);
  const SET = "openWB/set/internal_chargepoint";
  const GET = "openWB/internal_chargepoint/1/get";

  test.each([
    [6, "6"],
    [8.03, "8.03"],
    [13.7, "13.7"],
    [13.789, "13.78"],
    [40, "32"],
    [5.9, "0"],
    [0.1 + 0.2, "0"],
  ])("receives %d A as %s", (currentA, payload) => {
    expect(box.told("setCurrent", { currentA })).toEqual([`${SET}/1/data/set_current ${payload}`]);
  });

  test("receives a heartbeat when control is acquired, and then every 10 s; without it, it stops after 80 s", () => {
    expect(box.told("acquire")).toEqual([
      `${SET}/global_data {"heartbeat":1795262400,"parent_ip":"10.0.0.5"}`,
      `${SET}/1/data/parent_cp "3"`,
    ]);
    const { keepalive, deviceTimeout } = profileNamed("openwb-secondary");
    expect(keepalive).toMatchObject([{ every: 10_000, topic: `${SET}/global_data` }]);
    expect(deviceTimeout).toEqual({ after: 80_000, effect: "pause" });
  });

  test("is paused by 0, resumed by its current, and free at its maximum", () => {
    expect(box.told("pause")).toEqual([`${SET}/1/data/set_current 0`]);
    expect(box.told("resume", { lastCurrentA: 10 })).toEqual([`${SET}/1/data/set_current 10`]);
    expect(aTrial("openwb-secondary", { ...params, maxCurrentA: 16 }).told("release")).toEqual([
      `${SET}/1/data/set_current 16`,
    ]);
  });

  test("switches phases in two steps, in order", () => {
    expect(box.told("setPhases", { phases: 1 })).toEqual([
      `${SET}/1/data/phases_to_use 1`,
      `${SET}/1/data/trigger_phase_switch true`,
    ]);
  });

  test("reports JSON values", () => {
    expect(box.means(`${GET}/power`, "11040.5")).toEqual({ powerW: 11_040.5 });
    expect(box.means(`${GET}/imported`, "123456")).toEqual({ energyWh: 123_456 });
    expect(box.means(`${GET}/currents`, [16, 15.9, 0])).toEqual({ currentsA: [16, 15.9, 0] });
    expect(box.means(`${GET}/voltages`, [230, 231, 232])).toEqual({ voltagesV: [230, 231, 232] });
    expect(box.means(`${GET}/plug_state`, "true")).toEqual({ plugged: true });
    expect(box.means(`${GET}/charge_state`, "false")).toEqual({ charging: false });
    expect(box.means(`${GET}/phases_in_use`, "3")).toEqual({ phases: 3 });
    expect(box.means(`${GET}/soc`, "71")).toEqual({ socPct: 71 });
    expect(box.means(`${GET}/soc`, "255")).toEqual({ socPct: null });
    expect(box.means(`${GET}/rfid`, '"04A2B3C4"')).toEqual({ vehicleId: "04A2B3C4", vehicleIdKind: "rfid" });
    expect(box.means(`${GET}/rfid`, "null")).toEqual({ vehicleId: null });
    expect(box.means(`${GET}/vehicle_id`, '"02:AA:BB:00:00:01"')).toMatchObject({ vehicleIdKind: "mac" });
    expect([0, 1, 2].map((fault) => box.means(`${GET}/fault_state`, fault))).toEqual([
      { error: false },
      { error: false },
      { error: true },
    ]);
  });

  test("reads malformed lists of phases as far as they are lists, and ignores the rest", () => {
    expect(box.means(`${GET}/currents`, "16")).toEqual({ currentsA: [16] });
    expect(box.means(`${GET}/currents`, [16, null, "a"])).toEqual({ currentsA: [16, null, null] });
    expect(box.means(`${GET}/currents`, [null, null, null])).toEqual({ currentsA: null });
    for (const rubbish of [[], [[16], {}], Array.from({ length: 9 }, () => 16), { l1: 16 }, "1e999"])
      expect(box.means(`${GET}/currents`, rubbish)).toEqual({});
  });

  test("reports its limit in amperes, some units in hundredths", () => {
    expect(box.means(`${GET}/evse_current`, "16")).toEqual({ limitA: 16 });
    expect(box.means(`${GET}/evse_current`, "1600")).toEqual({ limitA: 16 });
  });

  test("works without the address of the gateway, which only its display shows", () => {
    expect(aTrial("openwb-secondary", { duo: 0 }).told("acquire")[0]).toBe(
      `${SET}/global_data {"heartbeat":1795262400,"parent_ip":null}`,
    );
  });

  test("receives whole amperes with older EVSE firmware, and the rounded value confirms the level", () => {
    const whole = aTrial("openwb-secondary", { ...params, amperes: "whole" });
    expect(whole.told("setCurrent", { currentA: 13.7 })).toEqual([`${SET}/1/data/set_current 13`]);
    expect(profileNamed("openwb-secondary").confirmedBy).toMatchObject({ tolerance: 0.5 });
  });
});

describe("an openWB 2 that stays a primary", () => {
  const box = aTrial("openwb-simpleapi", { id: 5 });
  const SET = "openWB/simpleAPI/set/chargepoint/5";
  const GET = "openWB/simpleAPI/chargepoint/5";

  test("receives whole amperes, and modes", () => {
    expect(box.told("setCurrent", { currentA: 13.7 })).toEqual([`${SET}/chargecurrent 13`]);
    expect(box.told("setCurrent", { currentA: 0 })).toEqual([`${SET}/chargemode stop`]);
    expect(box.told("acquire")).toEqual([`${SET}/chargemode instant`]);
    expect(box.told("resume", { lastCurrentA: 13 })).toEqual([`${SET}/chargemode instant`]);
    expect(box.told("release")).toEqual([`${SET}/chargemode pv`]);
  });

  test("reports values in the notation of Python", () => {
    expect(box.means(`${GET}/plug_state`, "True")).toEqual({ plugged: true });
    expect(box.means(`${GET}/charge_state`, "False")).toEqual({ charging: false });
    expect(box.means(`${GET}/rfid`, "null")).toEqual({ vehicleId: null });
    expect(box.means(`${GET}/currents/2`, "16.0")).toEqual({ currentsA: [null, 16, null] });
    expect(box.means(`${GET}/power`, "3680.0")).toEqual({ powerW: 3680 });
  });
});

describe("an openWB 1.9 as a satellite", () => {
  test.each([
    [1, "Current", "U1p3p"],
    [2, "Lp2Current", "U1p3pLp2"],
  ])("receives at charge point %i %s and %s", (id, current, phases) => {
    const box = aTrial("openwb-1.9", { id });
    expect(box.told("setCurrent", { currentA: 13 })).toEqual([`openWB/set/isss/${current} 13`]);
    expect(box.told("pause")).toEqual([`openWB/set/isss/${current} 0`]);
    expect(box.told("setPhases", { phases: 3 })).toEqual([`openWB/set/isss/${phases} 3`]);
  });

  test("receives a heartbeat of 1 every 10 s; without it, it stops after 80 s", () => {
    expect(aTrial("openwb-1.9", { id: 1 }).told("acquire")).toEqual(["openWB/set/isss/heartbeat 1"]);
    expect(profileNamed("openwb-1.9")).toMatchObject({
      keepalive: [{ every: 10_000, topic: "openWB/set/isss/heartbeat", text: "1" }],
      deviceTimeout: { after: 80_000, effect: "pause" },
    });
  });

  test("reports plain values", () => {
    const box = aTrial("openwb-1.9", { id: 1 });
    expect(box.means("openWB/lp/1/W", "3680")).toEqual({ powerW: 3680 });
    expect(box.means("openWB/lp/1/kWhCounter", "123.456")).toEqual({ energyWh: 123_456 });
    expect(box.means("openWB/lp/1/boolPlugStat", "1")).toEqual({ plugged: true });
    expect(box.means("openWB/lp/1/boolChargeStat", "0")).toEqual({ charging: false });
    expect(box.means("openWB/lp/1/APhase1", "16")).toEqual({ currentsA: [16, null, null] });
    expect(box.means("openWB/system/Timestamp", "1795262400")).toEqual({ online: true });
  });
});

describe("a charger with openWB's contract for MQTT charge points", () => {
  const charger = aTrial("openwb-mqtt-chargepoint", { id: 4 });

  test("receives amperes with fractions, and phases", () => {
    expect(charger.told("setCurrent", { currentA: 13.7 })).toEqual([
      "openWB/mqtt/chargepoint/4/set/current 13.7",
    ]);
    expect(charger.told("pause")).toEqual(["openWB/mqtt/chargepoint/4/set/current 0"]);
    expect(charger.told("setPhases", { phases: 1 })).toEqual([
      "openWB/mqtt/chargepoint/4/set/phases_to_use 1",
    ]);
  });

  test.each(["openWB/set/mqtt/chargepoint/4/get", "openWB/set/chargepoint/4/get"])(
    "answers under %s, by its generation",
    (get) => {
      expect(charger.means(`${get}/power`, "3680")).toEqual({ powerW: 3680 });
      expect(charger.means(`${get}/currents`, [16, 0, 0])).toEqual({ currentsA: [16, 0, 0] });
      expect(charger.means(`${get}/plug_state`, "true")).toEqual({ plugged: true });
      expect(charger.means(`${get}/voltages`, [230, 231, 232])).toEqual({ voltagesV: [230, 231, 232] });
      expect(charger.means(`${get}/rfid`, '"04A2B3C4"')).toEqual({
        vehicleId: "04A2B3C4",
        vehicleIdKind: "rfid",
      });
    },
  );
});
