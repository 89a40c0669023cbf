import { describe, expect, test } from "vitest";
import { aTrial } from "../aTrial.ts";

const PREFIX = "warp3/AbCd";
const warp = aTrial("warp", { prefix: PREFIX });

describe("a WARP charger", () => {
  test.each([
    [6, 6000],
    [13.7, 13_700],
    [8.03, 8030],
    [32, 32_000],
    [40, 32_000],
    [5.9, 0],
    [0, 0],
    [0.1 + 0.2, 0],
  ])("receives %d A as %i mA", (currentA, current) => {
    expect(warp.told("setCurrent", { currentA })).toEqual([
      `${PREFIX}/evse/external_current_update {"current":${current}}`,
    ]);
  });

  test("is blocked by 0, resumed by its current, and freed by 32 A in its slot", () => {
    expect(warp.json("pause")).toEqual({ current: 0 });
    expect(warp.json("resume", { lastCurrentA: 10 })).toEqual({ current: 10_000 });
    expect(warp.json("release")).toEqual({ current: 32_000 });
  });

  test("has external control switched on once in the first generation", () => {
    expect(warp.told("acquire")).toEqual([`${PREFIX}/evse/external_enabled_update {"enabled":true}`]);
  });

  test("switches phases through its power manager", () => {
    expect(warp.told("setPhases", { phases: 3 })).toEqual([
      `${PREFIX}/power_manager/external_control_update {"phases_wanted":3}`,
    ]);
  });

  test("cannot resume without a current", () => {
    expect(warp.answer("resume")).toEqual({ error: expect.stringContaining("lastCurrentA") });
  });

  test.each([
    [0, { state: "unplugged", plugged: false, charging: false }],
    [1, { state: "connected", plugged: true, charging: false }],
    [2, { state: "connected", plugged: true, charging: false }],
    [3, { state: "charging", plugged: true, charging: true, paused: false }],
    [4, { state: "error", error: true }],
  ])("reports with charger_state %i its state, and whether it allows charging", (charger_state, means) => {
    const state = { iec61851_state: 1, charger_state, allowed_charging_current: 13_700 };
    expect(warp.means(`${PREFIX}/evse/state`, state)).toEqual({ ...means, limitA: 13.7 });
  });

  test("reports whether it has a fault", () => {
    expect(warp.means(`${PREFIX}/evse/state`, { error_state: 0 })).toEqual({ error: false });
    expect(warp.means(`${PREFIX}/evse/state`, { error_state: 2 })).toEqual({ error: true });
  });

  test("confirms what was asked, as an object or as the bare number", () => {
    expect(warp.means(`${PREFIX}/evse/external_current`, { current: 16_000 })).toEqual({ requestedA: 16 });
    expect(warp.means(`${PREFIX}/evse/external_current`, "16000")).toEqual({ requestedA: 16 });
  });

  test("has one meter with names on older firmware", () => {
    expect(
      warp.means(`${PREFIX}/meter/values`, { power: 11_040.5, energy_rel: 1.5, energy_abs: 1234.567 }),
    ).toEqual({ powerW: 11_040.5, energyWh: 1_234_567 });
  });

  test("reads the meters of newer firmware, whose positions another topic lists, in any order of arrival", () => {
    const newer = aTrial("warp", { prefix: PREFIX });
    const ids = [209, 74, 1, 2, 3, 13, 17, 21];
    const values = [1234.567, 11_040, 230, 231, 232, 16, 15.9, null];
    const means = {
      powerW: 11_040,
      energyWh: 1_234_567,
      currentsA: [16, 15.9, null],
      voltagesV: [230, 231, 232],
    };
    expect(newer.means(`${PREFIX}/meters/0/values`, values)).toEqual({});
    expect(newer.means(`${PREFIX}/meters/0/value_ids`, ids)).toEqual(means);
    expect(newer.means(`${PREFIX}/meters/0/values`, values)).toEqual(means);
    expect(newer.means(`${PREFIX}/meters/1/values`, values)).toEqual({});
  });

  test("without a meter for a value reports no such value", () => {
    const newer = aTrial("warp", { prefix: PREFIX });
    newer.means(`${PREFIX}/meters/0/value_ids`, [74]);
    expect(newer.means(`${PREFIX}/meters/0/values`, [3680])).toEqual({ powerW: 3680 });
  });

  test("is measured by the meter that its configuration names", () => {
    const second = aTrial("warp", { prefix: PREFIX, meter: 2 });
    second.means(`${PREFIX}/meters/2/value_ids`, [74]);
    expect(second.means(`${PREFIX}/meters/2/values`, [3680])).toEqual({ powerW: 3680 });
    expect(second.means(`${PREFIX}/meters/0/values`, [11])).toEqual({});
  });

  test("names the charging user by tag or by the vehicle's own address, and reports when no one charges", () => {
    const topic = `${PREFIX}/charge_tracker/current_charge`;
    expect(
      warp.means(topic, { user_id: 3, authorization_type: 2, authorization_info: { tag_id: "04:A2:B3" } }),
    ).toEqual({ vehicleId: "04:A2:B3", vehicleIdKind: "rfid" });
    expect(warp.means(topic, { user_id: -1, authorization_type: 0, authorization_info: null })).toEqual({
      vehicleId: null,
    });
    expect(warp.means(topic, { user_id: 3, authorization_type: 1, authorization_info: null })).toEqual({});
    expect(warp.means(`${PREFIX}/ev/state`, { mac: "02:AA:BB:00:00:01", soc: 71 })).toEqual({
      vehicleId: "02:AA:BB:00:00:01",
      vehicleIdKind: "mac",
      socPct: 71,
    });
  });

  test("reports its phases, and its presence by its uptime", () => {
    const topic = `${PREFIX}/power_manager/low_level_state`;
    expect(warp.means(topic, { is_3phase: true })).toEqual({ phases: 3 });
    expect(warp.means(topic, { is_3phase: false })).toEqual({ phases: 1 });
    expect(warp.means(`${PREFIX}/evse/low_level_state`, { uptime: 1 })).toEqual({ online: true });
  });
});
