import { describe, expect, test } from "vitest";
import { aTrial, profileNamed } from "../aTrial.ts";

const wallboxTopic = (entity: string) => `wallbox_123456/${entity}`;
const seccTopic = (topic: string) => `pulsatrix/secc/c1/${topic}`;

describe("a Wallbox with its bridge", () => {
  const wallbox = aTrial("wallbox-mqtt-bridge", { serial: "123456" });

  test("receives whole amperes only: any other value becomes 0 there", () => {
    expect(wallbox.told("setCurrent", { currentA: 13.7 })).toEqual([
      `${wallboxTopic("max_charging_current")}/set 13`,
    ]);
    expect(wallbox.told("setCurrent", { currentA: 0 })).toEqual([`${wallboxTopic("charging_enable")}/set 0`]);
    expect(wallbox.told("resume", { lastCurrentA: 13 })).toEqual([
      `${wallboxTopic("charging_enable")}/set 1`,
    ]);
    expect(wallbox.told("release")).toEqual([
      `${wallboxTopic("max_charging_current")}/set 32`,
      `${wallboxTopic("charging_enable")}/set 1`,
    ]);
  });

  test("is written to once a minute at most, as each write goes to its database", () => {
    expect(profileNamed("wallbox-mqtt-bridge").rate).toMatchObject({ minInterval: 60_000, wear: "database" });
  });

  test("reports plain values", () => {
    expect(wallbox.means(wallboxTopic("charging_power/state"), "3680")).toEqual({ powerW: 3680 });
    expect(wallbox.means(wallboxTopic("charging_current_l1/state"), "16")).toEqual({
      currentsA: [16, null, null],
    });
    expect(wallbox.means(wallboxTopic("added_energy/state"), "1200")).toEqual({ sessionEnergyWh: 1200 });
    expect(wallbox.means(wallboxTopic("cumulative_added_energy/state"), "123456")).toEqual({
      energyWh: 123_456,
    });
    expect(wallbox.means(wallboxTopic("cable_connected/state"), "1")).toEqual({ plugged: true });
    expect(wallbox.means(wallboxTopic("status/state"), "Charging")).toMatchObject({ state: "charging" });
    for (const [status, state] of [
      ["Ready", "unplugged"],
      ["Connected waiting car", "connected"],
      ["Queue by power boost", "connected"],
      ["Locked", "unknown"],
    ] as const)
      expect(wallbox.means(wallboxTopic("status/state"), status)).toMatchObject({ state });
    expect(wallbox.means("wallbox_123456/availability", "offline")).toEqual({ online: false });
  });
});

describe("a Heidelberg box with wbec", () => {
  const wbec = aTrial("wbec", { lp: 3 });

  test("receives tenths up to 16 A, and is switched off and on for a pause", () => {
    expect(wbec.told("setCurrent", { currentA: 13.78 })).toEqual(["wbec/lp/3/maxcurrent 13.7"]);
    expect(wbec.told("setCurrent", { currentA: 32 })).toEqual(["wbec/lp/3/maxcurrent 16"]);
    expect(wbec.told("setCurrent", { currentA: 5.9 })).toEqual(["wbec/lp/3/enable false"]);
    expect(wbec.told("resume", { lastCurrentA: 10 })).toEqual(["wbec/lp/3/enable true"]);
    expect(aTrial("wbec", { lp: 10 }).answer("pause")).toHaveProperty("error");
  });

  test("in status C may charge or not: only chargeState shows which", () => {
    expect(wbec.means("wbec/lp/3/status", "A")).toEqual({
      state: "unplugged",
      plugged: false,
      charging: false,
    });
    expect(wbec.means("wbec/lp/3/status", "C")).toEqual({ plugged: true });
    expect(wbec.means("wbec/lp/3/chargeState", "1")).toEqual({ charging: true });
    expect(wbec.means("wbec/lp/3/currLimit", "13.7")).toEqual({ limitA: 13.7 });
    expect(wbec.means("wbec/lp/3/energy", "123.456")).toEqual({ energyWh: 123_456 });
  });
});

describe("a pulsatrix SECC", () => {
  const secc = aTrial("pulsatrix", { clientId: "c1" });

  test("takes tenths of amperes and whole watts, for 300 s at a time", () => {
    expect(secc.told("acquire")).toEqual([`${seccTopic("charging/limitTimeout")} 300000`]);
    expect(secc.told("setCurrent", { currentA: 8.53 })).toEqual([
      `${seccTopic("charging/amperageLimit")} 8.5`,
    ]);
    expect(secc.told("setPower", { powerW: 11_040.7 })).toEqual([
      `${seccTopic("charging/powerLimit")} 11040`,
    ]);
    expect(secc.told("pause")).toEqual([`${seccTopic("charging/amperageLimit")} 0`]);
    expect(profileNamed("pulsatrix")).toMatchObject({
      refresh: { every: 60_000 },
      deviceTimeout: { after: 300_000, effect: "own limits" },
    });
  });

  test("reports its meter, and the session as a difference, by either of two names", () => {
    const meter = {
      activePower: 3680,
      energyImported: 123.456,
      amperage: [16, 0, 0],
      voltage: [230, 231, 232],
    };
    expect(secc.means(seccTopic("meter/fiscal"), meter)).toEqual({
      powerW: 3680,
      energyWh: 123_456,
      currentsA: [16, 0, 0],
      voltagesV: [230, 231, 232],
    });
    for (const register of ["energyActiveImportRegister", "lastMeterValue"]) {
      expect(
        secc.means(seccTopic("tx/status"), { state: "CHARGING", [register]: 125.656, meterStart: 123.456 }),
      ).toMatchObject({ state: "charging", sessionEnergyWh: 2200 });
    }
    for (const state of ["IDLE", "COMPLETED"])
      expect(secc.means(seccTopic("tx/status"), { state })).toMatchObject({
        state: "unplugged",
        plugged: false,
      });
    expect(secc.means(seccTopic("tx/status"), { state: "LINGERING" })).toEqual({ state: "unknown" });
    for (const state of ["SUSPENDED_EV", "SUSPENDED_EVSE"])
      expect(secc.means(seccTopic("tx/status"), { state })).toMatchObject({ state: "paused", plugged: true });
  });

  test("confirms by what it signals to the vehicle", () => {
    expect(
      secc.means(seccTopic("charging/status"), {
        signaledAmperage: 8.5,
        vehicleStatus: "C",
        usedPhasesSession: "111",
      }),
    ).toEqual({ limitA: 8.5, plugged: true, phases: 3 });
  });
});

describe("a Greencell HabuDen", () => {
  const habu = aTrial("greencell-habuden", { serial: "EVGC1" });
  const CMD = "/greencell/evse/EVGC1/cmd";

  test("is addressed by name, in whole amperes", () => {
    expect(habu.told("setCurrent", { currentA: 13.7 })).toEqual([
      `${CMD} {"name":"SET_CURRENT","current":13}`,
    ]);
    expect(habu.told("pause")).toEqual([`${CMD} {"name":"STOP"}`]);
    expect(habu.told("resume", { lastCurrentA: 13 })).toEqual([`${CMD} {"name":"START"}`]);
  });

  test("reports mA, V and W", () => {
    const own = "/greencell/evse/EVGC1";
    expect(habu.means(`${own}/power`, { momentary: 3680 })).toEqual({ powerW: 3680 });
    expect(habu.means(`${own}/current`, { l1: 16_000, l2: 0, l3: 0 })).toEqual({ currentsA: [16, 0, 0] });
    expect(habu.means(`${own}/status`, { state: "CHARGING" })).toMatchObject({
      state: "charging",
      online: true,
    });
    for (const state of ["UNAVAILABLE", "OFFLINE"])
      expect(habu.means(`${own}/status`, { state })).toMatchObject({ state: "unknown", online: false });
    expect(habu.means(`${own}/device_state`, { level: "EXECUTE", hems_current: 13 })).toEqual({
      requestedA: 13,
    });
  });
});

describe("a relay", () => {
  const tasmota = aTrial("tasmota-switch", { topic: "plug", maxCurrentA: 10 });
  const shelly = aTrial("shelly-gen2-switch", { prefix: "shelly1", channel: 0, src: "x", maxCurrentA: 10 });

  test("is on only where the limit lets it draw all it can", () => {
    expect([9.9, 10, 13.7].flatMap((currentA) => tasmota.told("setCurrent", { currentA }))).toEqual([
      "cmnd/plug/POWER OFF",
      "cmnd/plug/POWER ON",
      "cmnd/plug/POWER ON",
    ]);
    expect(tasmota.told("release")).toEqual(["cmnd/plug/POWER ON"]);
  });

  test("of Shelly switches itself off without repeated orders, but not when it is free or paused", () => {
    const params = (action: string, input = {}) => (shelly.json(action, input) as { params: unknown }).params;
    expect(shelly.answer("setCurrent", { currentA: 13 })).toMatchObject({
      publishes: [{ topic: "shelly1/rpc" }],
    });
    expect(params("setCurrent", { currentA: 13 })).toEqual({ id: 0, on: true, toggle_after: 120 });
    expect(params("pause")).toEqual({ id: 0, on: false });
    expect(params("release")).toEqual({ id: 0, on: true });
  });

  test("reports its measurements", () => {
    expect(tasmota.means("tele/plug/SENSOR", { ENERGY: { Power: 2300, Total: 12.345 } })).toEqual({
      powerW: 2300,
      energyWh: 12_345,
    });
    expect(tasmota.means("tele/plug/SENSOR", { ENERGY: { Current: 10.1, Voltage: 231 } })).toEqual({
      currentsA: [10.1],
      voltagesV: [231],
    });
    expect(
      tasmota.means("tele/plug/SENSOR", { ENERGY: { Current: [10, 9.9, 10.1], Voltage: [230, 231, 232] } }),
    ).toEqual({ currentsA: [10, 9.9, 10.1], voltagesV: [230, 231, 232] });
    expect(tasmota.means("tele/plug/LWT", "Offline")).toEqual({ online: false });
    expect(shelly.means("shelly1/status/switch:0", { output: false, apower: 0 })).toEqual({
      powerW: 0,
      paused: true,
    });
  });
});

describe("the rest", () => {
  test("TWCManager receives amperes for an hour, and pauses only where the replaced state can be restored", () => {
    const twc = aTrial("twcmanager", { prefix: "TWC", twc: "AB12" });
    expect(twc.told("setCurrent", { currentA: 8.9 })).toEqual(["TWC/control/chargeNow 8,3600"]);
    expect(twc.told("release")).toEqual(["TWC/control/chargeNowEnd "]);
    expect(twc.answer("pause")).toEqual({ error: expect.stringContaining("cannot pause") });
    expect(twc.answer("setCurrent", { currentA: 0 })).toEqual(twc.answer("pause"));
    const recent = aTrial("twcmanager", { prefix: "TWC", twc: "AB12", ownAction: 3 });
    expect(recent.told("pause")).toEqual(["TWC/control/nonScheduledAction 2", "TWC/control/chargeNowEnd "]);
    expect(recent.told("setCurrent", { currentA: 0 })).toEqual(recent.told("pause"));
    expect(recent.told("resume", { lastCurrentA: 8 })).toEqual([
      "TWC/control/chargeNow 8,3600",
      "TWC/control/nonScheduledAction 3",
    ]);
    expect(recent.told("release")).toEqual(["TWC/control/chargeNowEnd ", "TWC/control/nonScheduledAction 3"]);
    expect(twc.means("TWC/AB12/ampsInUse", "8.52")).toEqual({ currentA: 8.52 });
    expect(twc.means("TWC/AB12/chargerLoadInW", "1955")).toEqual({ powerW: 1955 });
    expect(twc.means("TWC/AB12/voltagePhaseA", "231")).toEqual({ voltagesV: [231, null, null] });
    const states = ["0", "1", "2", "3", "4", "8"].map(
      (code) => (twc.means("TWC/AB12/state", code) as { state: string }).state,
    );
    expect(states).toEqual(["unknown", "charging", "error", "finished", "connected", "connected"]);
    expect(twc.means("TWC/AB12/state", "10")).toEqual({});
    expect(twc.means("TWC/AB12/lifetimekWh", "159")).toEqual({ energyWh: 159_000 });
    expect(twc.means("TWC/AB12/currentVehicleVIN", "5YJ3E7EB0KF000001")).toEqual({
      vehicleId: "5YJ3E7EB0KF000001",
      vehicleIdKind: "vin",
    });
  });

  test("an E3/DC wallbox is controlled by its mode", () => {
    const e3dc = aTrial("e3dc-rscp2mqtt");
    expect(e3dc.told("setCurrent", { currentA: 8.9 })).toEqual(["e3dc/set/wallbox/control mix:8"]);
    expect(e3dc.told("pause")).toEqual(["e3dc/set/wallbox/control stop"]);
    expect(e3dc.told("release")).toEqual(["e3dc/set/wallbox/control solar:32"]);
  });
});
