import { describe, expect, test } from "vitest";

import { loadProfiles } from "../../src/daemon/loadProfiles.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { amperes, chargerId, instant, millis, seconds, watts } from "../../src/domain/units.ts";
import { MODELS } from "../../src/sim/mixedFloor.ts";
import { powerCycled, replugged } from "../../src/sim/simulatedModel.ts";
import { BUS, Pair, PARAMETERS } from "./pairing.ts";

const current = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };

/** A charger that was ordered to 16 A and draws it. */
function at16(profile: string, pairing: Omit<ConstructorParameters<typeof Pair>[0], "profile"> = {}): Pair {
  const pair = new Pair({ profile, ...pairing });
  pair.pass(seconds(2));
  pair.order(current(16));
  pair.pass(seconds(3));
  return pair;
}

const reboot = (pair: Pair): void => void (pair.simulated = powerCycled(pair.simulated, pair.now));

const limitAfter = (profile: string, topic: string, payload: string): number => {
  const pair = at16(profile);
  pair.deliver(topic, payload);
  return pair.limit;
};

const limitAfterNextCar = (pair: Pair): number => {
  pair.simulated = replugged(replugged(pair.simulated, null, pair.now), BUS, pair.now);
  return pair.limit;
};

const modelsReporting = (kind: string) =>
  [...MODELS.keys()].filter((profile) => {
    const vehicle = { ...BUS, identity: { kind, value: "02:aa:bb:00:00:01" } };
    return at16(profile, { vehicle }).telemetry.identity?.value === "02:aa:bb:00:00:01";
  });

test("every model has a profile that is not experimental, ocpp2mqtt excepted", () => {
  const { profiles } = loadProfiles(null);
  expect(Object.keys(PARAMETERS)).toEqual([...MODELS.keys()]);
  // ocpp2mqtt stays experimental: it has neither TLS nor authentication.
  for (const name of MODELS.keys())
    expect([name, profiles.get(name)?.experimental]).toEqual([name, name === "ocpp2mqtt"]);
});

describe.each([...MODELS.keys()])("a simulated %s", (profile) => {
  test("draws 16 A, pauses and charges again as ordered, and reports it", () => {
    const pair = at16(profile);
    expect([pair.drawn, pair.telemetry.powerW, pair.telemetry.state]).toEqual([16, 11_040, "charging"]);
    pair.order(PAUSE);
    pair.pass(seconds(3));
    expect([pair.drawn, pair.telemetry.powerW]).toEqual([0, 0]);
    expect(pair.telemetry.state).not.toBe("charging");
    pair.order(current(10));
    pair.pass(seconds(3));
    expect([pair.drawn, pair.telemetry.state]).toEqual([10, "charging"]);
    expect(pair.refusals).toEqual([]);
  });

  test("reports that the vehicle was unplugged", () => {
    const pair = at16(profile);
    pair.simulated = replugged(pair.simulated, null, pair.now);
    pair.pass(seconds(2));
    expect([pair.telemetry.state, pair.telemetry.powerW]).toEqual(["unplugged", 0]);
  });

  test("that ignores orders keeps its current and confirms nothing", () => {
    const pair = at16(profile);
    pair.simulated = { ...pair.simulated, faults: { ignoresSetpoints: true } };
    pair.order(current(8));
    pair.pass(seconds(5));
    const { signal } = pair.instance.profile.confirmedBy ?? {};
    expect([pair.drawn, signal === undefined ? 16 : pair.signals[signal]]).toEqual([16, 16]);
  });

  test("that lies confirms 8 A and reports 16 A", () => {
    const pair = at16(profile);
    pair.simulated = { ...pair.simulated, faults: { lies: true } };
    pair.order(current(8));
    pair.pass(seconds(5));
    const { signal } = pair.instance.profile.confirmedBy ?? {};
    // openWB publishes the applied limit, so it cannot confirm another one.
    const confirmed = profile === "openwb-secondary" ? 16 : 8;
    expect([pair.telemetry.powerW, signal === undefined ? confirmed : pair.signals[signal]]).toEqual([
      11_040,
      confirmed,
    ]);
  });

  test("that lags applies orders later, and in their order", () => {
    const pair = at16(profile);
    pair.simulated = { ...pair.simulated, faults: { lagsBy: seconds(20) } };
    pair.order(PAUSE);
    pair.pass(seconds(10));
    expect(pair.drawn).toBe(16);
    pair.order(current(8));
    pair.pass(seconds(11));
    expect(pair.drawn).toBe(0);
    pair.pass(seconds(15));
    expect(pair.drawn).toBe(8);
  });
});

describe("a level of 0 or below the minimum, sent without the driver", () => {
  test("go-e keeps the old current without an answer", () => {
    for (const payload of ["0", "4", "33", "13.5", "true", '"8"'])
      expect(limitAfter("go-e-v2", "go-eCharger/000001/amp/set", payload)).toBe(16);
  });

  test("OpenEVSE raises it to 6 A, and lowers a high level to its maximum", () => {
    const topic = "openevse-a7d4/override/set";
    expect(limitAfter("openevse-override", topic, '{"charge_current":0}')).toBe(6);
    expect(limitAfter("openevse-override", topic, '{"charge_current":4}')).toBe(6);
    expect(limitAfter("openevse-override", topic, '{"charge_current":80}')).toBe(32);
  });

  test("WARP blocks charging at 0 and ignores other values below 6000 mA", () => {
    const topic = "warp3/AbCd/evse/external_current_update";
    expect(limitAfter("warp", topic, "0")).toBe(0);
    expect(limitAfter("warp", topic, '{"current":4000}')).toBe(16);
    expect(limitAfter("warp", topic, "8000.5")).toBe(16);
    expect(limitAfter("warp", topic, "8000")).toBe(8);
  });

  test("openWB pauses at 0 and rejects other values below 6 A", () => {
    const topic = "openWB/set/internal_chargepoint/0/data/set_current";
    expect(limitAfter("openwb-secondary", topic, "0")).toBe(0);
    expect(limitAfter("openwb-secondary", topic, "5.9")).toBe(16);
  });

  test("evcc rejects it", () => {
    for (const payload of ["0", "5.9", "33", "", "nil"])
      expect(limitAfter("evcc", "evcc/loadpoints/1/maxCurrent/set", payload)).toBe(16);
  });

  test("EVerest stops charging at 0 and less, on both interfaces", () => {
    expect(limitAfter("everest-api-legacy", "everest_api/evse_manager/cmd/set_limit_amps", "0")).toBe(0);
    expect(limitAfter("everest-api-legacy", "everest_api/evse_manager/cmd/set_limit_watts", "-7000")).toBe(0);
    const limits = "everest_api/1/external_energy_limits_consumer/limits/m2e/set_external_limits";
    const schedule_import = [{ limits_to_leaves: { ac_max_current_A: { value: 0 } } }];
    const [schedule_export, schedule_setpoints] = [[], []];
    expect(limitAfter("everest-api-v1", limits, JSON.stringify({ schedule_import }))).toBe(16);
    expect(
      limitAfter(
        "everest-api-v1",
        limits,
        JSON.stringify({ schedule_import, schedule_export, schedule_setpoints }),
      ),
    ).toBe(0);
  });

  test("SmartEVSE reads 0 as a release and ignores other values below its minimum", () => {
    const topic = "SmartEVSE/1/Set/CurrentOverride";
    expect(limitAfter("smartevse", topic, "0")).toBe(32);
    expect(limitAfter("smartevse", topic, "59")).toBe(16);
    expect(limitAfter("smartevse", topic, "321")).toBe(16);
  });

  test("Victron keeps the old current", () => {
    const topic = "W/c0619ab1/evcharger/40/SetCurrent";
    for (const value of [0, 5, 33, 13.5, null])
      expect(limitAfter("victron-evcs", topic, JSON.stringify({ value }))).toBe(16);
  });
});

describe("a release", () => {
  test("returns every model to its own maximum", () => {
    for (const profile of MODELS.keys()) {
      const pair = at16(profile);
      pair.order(RELEASE);
      pair.pass(seconds(3));
      expect([profile, pair.drawn]).toEqual([profile, 32]);
    }
  });

  test("go-e and evcc keep the last current also under their own control", () => {
    const [goE, evcc] = [at16("go-e-v2"), at16("evcc")];
    goE.deliver("go-eCharger/000001/frc/set", "0");
    evcc.deliver("evcc/loadpoints/1/mode/set", "pv");
    expect([goE.limit, evcc.limit]).toEqual([16, 16]);
  });
});

describe("lost keepalives, reboots, phases and identities", () => {
  test("openWB goes to 0 A 80 s after the last heartbeat, and stays there until the next order", () => {
    const pair = at16("openwb-secondary");
    pair.sendsKeepalives = false;
    const heartbeat = pair.simulated.order.masterAt ?? 0;
    pair.pass(millis(heartbeat + 80_000 - pair.now));
    expect(pair.limit).toBe(16);
    pair.pass(seconds(2));
    expect(pair.limit).toBe(0);
    pair.sendsKeepalives = true;
    pair.pass(seconds(20));
    expect(pair.limit).toBe(0);
    pair.order(current(16));
    expect(pair.limit).toBe(16);
  });

  test("openWB reads the time in the heartbeat: a gateway whose clock is 80 s behind counts as lost", () => {
    const pair = at16("openwb-secondary");
    const behind = Math.floor(pair.now / 1000) - 81;
    pair.deliver("openWB/set/internal_chargepoint/global_data", JSON.stringify({ heartbeat: behind }));
    pair.sendsKeepalives = false;
    pair.pass(seconds(1));
    expect(pair.limit).toBe(0);
  });

  test("all other models hold their last order when the gateway is lost", () => {
    for (const profile of MODELS.keys()) {
      if (profile === "openwb-secondary") continue;
      const pair = at16(profile);
      pair.sendsKeepalives = false;
      pair.pass(seconds(300));
      expect([profile, pair.drawn]).toEqual([profile, 16]);
    }
  });

  test("a power cut loses only orders that are kept in RAM", () => {
    const after = [...MODELS.keys()].map((profile) => {
      const pair = at16(profile);
      reboot(pair);
      pair.pass(seconds(12));
      return [profile, pair.drawn];
    });
    expect(Object.fromEntries(after)).toEqual({
      "go-e-v2": 16,
      "openevse-override": 32,
      warp: 32,
      "openwb-secondary": 0,
      evcc: 16,
      "everest-api-v1": 32,
      "everest-api-legacy": 32,
      smartevse: 32,
      "victron-evcs": 16,
      ocpp2mqtt: 16,
    });
  });

  test("OpenEVSE ends its override when the vehicle leaves, unless auto_release is false", () => {
    expect(limitAfterNextCar(at16("openevse-override"))).toBe(16);
    const forgetful = at16("openevse-override");
    forgetful.deliver("openevse-a7d4/override/set", '{"auto_release":true}');
    expect(limitAfterNextCar(forgetful)).toBe(32);
  });

  test("Victron stops publishing a minute after the last keepalive", () => {
    const pair = at16("victron-evcs");
    pair.sendsKeepalives = false;
    pair.pass(seconds(90));
    pair.deliver("W/c0619ab1/evcharger/40/SetCurrent", '{"value":8}');
    pair.pass(seconds(5));
    expect([pair.drawn, pair.telemetry.powerW]).toEqual([8, 11_040]);
  });

  test("ocpp2mqtt rejects commands for another connector, and does not answer unknown ones", () => {
    const pair = at16("ocpp2mqtt");
    pair.deliver("ocpp/charger1/cmd", '{"action":"clear_charging_profile","args":{"connector_id":2}}');
    expect(pair.refusals).toEqual(["Rejected"]);
    pair.deliver("ocpp/charger1/cmd", '{"action":"dance","args":{"connector_id":1}}');
    pair.deliver("ocpp/charger1/cmd", '{"op":"clear_charging_profile","message":{"connector_id":1}}');
    pair.deliver("ocpp/charger1/cmd", "not JSON");
    expect([pair.refusals, pair.limit]).toEqual([["Rejected"], 16]);
  });

  test("ocpp2mqtt blocks sessions after each connection until charging is enabled", () => {
    const pair = at16("ocpp2mqtt");
    pair.sendsKeepalives = false;
    reboot(pair);
    pair.pass(seconds(60));
    expect(pair.drawn).toBe(0);
    pair.sendsKeepalives = true;
    pair.pass(seconds(3));
    expect(pair.drawn).toBe(16);
  });

  test("evcc applies a current at once only when the phases are sent too", () => {
    const raw = at16("evcc");
    raw.deliver("evcc/loadpoints/1/maxCurrent/set", "8");
    raw.pass(seconds(20));
    expect(raw.drawn).toBe(16);
    raw.pass(seconds(15));
    expect(raw.drawn).toBe(8);
    const driven = at16("evcc");
    driven.order(current(8));
    driven.pass(seconds(2));
    expect(driven.drawn).toBe(8);
  });

  test("evcc publishes online before it accepts commands, and rejects the mode smart", () => {
    const pair = at16("evcc");
    reboot(pair);
    pair.deliver("evcc/loadpoints/1/mode/set", "off");
    pair.pass(seconds(2));
    expect(pair.drawn).toBe(16);
    pair.deliver("evcc/loadpoints/1/mode/set", "smart");
    expect(pair.simulated.order.mode).toBe("now");
  });

  test("a release restores the owner's settings of evcc; evcc that was off is not started", () => {
    const pair = new Pair({ profile: "evcc" });
    pair.pass(seconds(2));
    pair.deliver("evcc/loadpoints/1/maxCurrent/set", "20");
    pair.deliver("evcc/loadpoints/1/mode/set", "minpv");
    pair.pass(seconds(2));
    pair.order(current(8));
    pair.pass(seconds(2));
    pair.order(RELEASE);
    pair.pass(seconds(2));
    expect([pair.simulated.order.mode, pair.limit]).toEqual(["minpv", 20]);
    const off = new Pair({ profile: "evcc" });
    off.pass(seconds(2));
    off.deliver("evcc/loadpoints/1/mode/set", "off");
    off.pass(seconds(2));
    off.order(current(8));
    off.pass(seconds(40));
    expect(off.drawn).toBe(0);
  });

  test("EVerest ignores a pause command on an empty bay, and applies a limit of 0", () => {
    const commands = [
      ["everest-api-legacy", "everest_api/evse_manager/cmd/pause_charging"],
      ["everest-api-v1", "everest_api/1/evse_manager_consumer/evse/m2e/pause_charging"],
    ] as const;
    for (const [profile, pauseCommand] of commands) {
      const commanded = new Pair({ profile, vehicle: null });
      commanded.deliver(pauseCommand, "true");
      commanded.simulated = replugged(commanded.simulated, BUS, commanded.now);
      commanded.pass(seconds(5));
      expect([profile, commanded.drawn]).toEqual([profile, 32]);
      const ordered = new Pair({ profile, vehicle: null });
      ordered.order(PAUSE);
      ordered.pass(seconds(2));
      ordered.simulated = replugged(ordered.simulated, BUS, ordered.now);
      ordered.pass(seconds(5));
      expect([profile, ordered.drawn]).toEqual([profile, 0]);
      ordered.order({ kind: "power", watts: watts(6900) });
      ordered.pass(seconds(5));
      expect([profile, ordered.drawn]).toEqual([profile, 10]);
    }
  });

  test("phases can be switched on the models that support it", () => {
    const drawnOn: readonly (readonly [string, string, string])[] = [
      ["go-e-v2", "go-eCharger/000001/psm/set", "1"],
      ["warp", "warp3/AbCd/power_manager/external_control_update", '{"phases_wanted":1}'],
      ["evcc", "evcc/loadpoints/1/phasesConfigured/set", "1"],
      ["everest-api-legacy", "everest_api/evse_manager/cmd/set_limit_amps_phases", '{"amps":16,"phases":1}'],
      ["smartevse", "SmartEVSE/1/Set/EnableC2", "1"],
    ];
    for (const [profile, topic, payload] of drawnOn) {
      const pair = at16(profile);
      pair.deliver(topic, payload);
      pair.pass(seconds(3));
      expect([profile, pair.telemetry.powerW]).toEqual([profile, 3680]);
    }
    const openwb = at16("openwb-secondary");
    openwb.deliver("openWB/set/internal_chargepoint/0/data/phases_to_use", "1");
    openwb.deliver("openWB/set/internal_chargepoint/0/data/trigger_phase_switch", "true");
    openwb.pass(seconds(3));
    expect(openwb.telemetry.powerW).toBe(3680);
  });

  test("each kind of identity is reported by the models that can read it", () => {
    expect(modelsReporting("rfid")).toEqual([
      "openevse-override",
      "warp",
      "openwb-secondary",
      "evcc",
      "smartevse",
    ]);
    expect(modelsReporting("name")).toEqual(["go-e-v2"]);
    expect(modelsReporting("mac")).toEqual([
      "warp",
      "openwb-secondary",
      "evcc",
      "everest-api-v1",
      "everest-api-legacy",
      "smartevse",
    ]);
  });
});

test("a clock that went back changes nothing", () => {
  const pair = at16("evcc");
  pair.now = instant(pair.now - 60_000);
  pair.pass(seconds(5));
  expect([pair.drawn, pair.simulated.charger.traits.id]).toEqual([16, chargerId("bay-01")]);
});
