import { describe, expect, test } from "vitest";
import { aTrial, profileNamed } from "../aTrial.ts";

const charger = aTrial("ocpp2mqtt", { base: "ocpp/charger1", connector: 2 });
const STATE = "ocpp/charger1/state";

const profileOf = (unit: string, limit: number) => ({
  action: "set_charging_profile",
  args: {
    connector_id: 2,
    cs_charging_profiles: {
      charging_profile_id: 1,
      stack_level: 0,
      charging_profile_purpose: "TxDefaultProfile",
      charging_profile_kind: "Relative",
      charging_schedule: { charging_rate_unit: unit, charging_schedule_period: [{ start_period: 0, limit }] },
    },
  },
});

describe("a charge point behind ocpp2mqtt", () => {
  test("receives tenths of amperes, or watts, in a charging profile", () => {
    expect(charger.answer("setCurrent", { currentA: 13.78 })).toMatchObject({
      publishes: [{ topic: "ocpp/charger1/cmd", qos: 1, retain: false }],
    });
    expect(charger.json("setCurrent", { currentA: 13.78 })).toEqual(profileOf("A", 13.7));
    expect(charger.json("setPower", { powerW: 11_040 })).toEqual(profileOf("W", 11_040));
  });

  test("is paused by a limit of 0, for anything less than 6 A and for negative power", () => {
    expect(charger.json("pause")).toEqual(profileOf("A", 0));
    expect(charger.told("setCurrent", { currentA: 5.9 })).toEqual(charger.told("pause"));
    expect(charger.told("setPower", { powerW: 4000 })).toEqual(charger.told("pause"));
    expect(charger.told("setPower", { powerW: -4000 })).toEqual(charger.told("pause"));
    const single = aTrial("ocpp2mqtt", { base: "ocpp/charger1", phases: 1 });
    expect(single.json("setPower", { powerW: 4000 })).toMatchObject({
      args: { cs_charging_profiles: { charging_schedule: { charging_rate_unit: "W" } } },
    });
  });

  test("resumes by the current again, and is released by clearing the profile", () => {
    expect(charger.json("resume", { lastCurrentA: 10 })).toEqual(profileOf("A", 10));
    expect(charger.json("release")).toEqual({
      action: "clear_charging_profile",
      args: { connector_id: 2, charging_profile_purpose: "TxDefaultProfile", stack_level: 0 },
    });
  });

  test.each([
    ["Available", "unplugged"],
    ["Preparing", "connected"],
    ["Charging", "charging"],
    ["SuspendedEVSE", "paused"],
    ["SuspendedEV", "paused"],
    ["Finishing", "finished"],
    ["Faulted", "error"],
    ["Unavailable", "unknown"],
  ])("reads the status %s as %s", (payload, state) => {
    expect(charger.means(`${STATE}/status`, payload)).toMatchObject({ state });
  });

  test.each(["SuspendedEVSE", "SuspendedEV"])("reports %s while a vehicle is plugged in", (payload) => {
    expect(charger.means(`${STATE}/status`, payload)).toMatchObject({ plugged: true });
  });

  test("reports power, energy and errors, and whether a command was accepted", () => {
    expect(charger.means(`${STATE}/power_active_import`, "3680.0")).toEqual({ powerW: 3680 });
    expect(charger.means(`${STATE}/energy_active_import_register`, "123456")).toEqual({ energyWh: 123_456 });
    expect(charger.means(`${STATE}/error_code`, "NoError")).toEqual({ error: false });
    expect(charger.means(`${STATE}/error_code`, "GroundFailure")).toEqual({ error: true });
    expect(charger.means(`${STATE}/error_code`, "None")).toEqual({ error: null });
    expect(charger.heard("ocpp/charger1/cmd_result/status", "Rejected")).toEqual({
      means: {},
      answer: { accepted: false, reason: "Rejected" },
    });
  });

  test("is allowed to start sessions every 10 s, since each of its connections begins with none allowed", () => {
    expect(profileNamed("ocpp2mqtt").keepalive).toMatchObject([
      {
        every: 10_000,
        topic: "{base}/cmd",
        json: { action: "charging_enabled", args: "ON" },
        asksOnly: false,
      },
    ]);
  });

  test("reports whether the charge point is connected", () => {
    expect(charger.means(`${STATE}/connection_state`, "DISCONNECTED")).toEqual({ online: false });
    expect(charger.means(`${STATE}/connection_state`, "CONNECTED")).toEqual({ online: true });
    expect(charger.means(`${STATE}/last_seen`, "2026-11-21T12:00:00Z")).toEqual({ online: true });
  });

  test("is not believed about its current, which is that of whichever phase came last", () => {
    expect(charger.means(`${STATE}/current_import`, "0")).toEqual({});
  });

  test("is experimental: one connector, no TLS, no authentication", () => {
    expect(profileNamed("ocpp2mqtt").experimental).toBe(true);
  });
});
