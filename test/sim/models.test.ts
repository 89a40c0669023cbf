import { describe, expect, test } from "vitest";

import { loadProfiles } from "../../src/daemon/loadProfiles.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { amperes, chargerId, instant, millis, seconds, watts } from "../../src/domain/units.ts";
import { MODELS } from "../../src/sim/mixedFloor.ts";
import { powerCycled, replugged } from "../../src/sim/simulatedModel.ts";
import { BUS, Pair, PLACES } from "./pairing.ts";

const current = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };

/** A charger that has been told 16 A and draws it. */
function at16(profile: string, pairing: Omit<ConstructorParameters<typeof Pair>[0], "profile"> = {}): Pair {
  const pair = new Pair({ profile, ...pairing });
  pair.pass(seconds(2));
  pair.order(current(16));
  pair.pass(seconds(3));
  return pair;
}

const reboot = (pair: Pair): void => void (pair.made = powerCycled(pair.made, pair.now));

const limitAfter = (profile: string, topic: string, payload: string): number => {
  const pair = at16(profile);
  pair.say(topic, payload);
  return pair.limit;
};

const limitAfterNextCar = (pair: Pair): number => {
  pair.made = replugged(replugged(pair.made, null, pair.now), BUS, pair.now);
  return pair.limit;
};

const makesThatTell = (kind: string) =>
  [...MODELS.keys()].filter((profile) => {
    const vehicle = { ...BUS, identity: { kind, value: "02:aa:bb:00:00:01" } };
    return at16(profile, { vehicle }).telemetry.identity?.value === "02:aa:bb:00:00:01";
  });

test("every simulated make is a profile that is proved", () => {
  const { profiles } = loadProfiles(null);
  expect(Object.keys(PLACES)).toEqual([...MODELS.keys()]);
  // ocpp2mqtt has no TLS and no authentication, and stays experimental however well it behaves.
  for (const name of MODELS.keys())
    expect([name, profiles.get(name)?.experimental]).toEqual([name, name === "ocpp2mqtt"]);
});

describe.each([...MODELS.keys()])("a simulated %s", (profile) => {
  test("is told 16 A, pauses, charges again and is measured to do so", () => {
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

  test("shows when the plug is pulled", () => {
    const pair = at16(profile);
    pair.made = replugged(pair.made, null, pair.now);
    pair.pass(seconds(2));
    expect([pair.telemetry.state, pair.telemetry.powerW]).toEqual(["unplugged", 0]);
  });

  test("that ignores what it is told goes on, and does not confirm it", () => {
    const pair = at16(profile);
    pair.made = { ...pair.made, faults: { ignoresSetpoints: true } };
    pair.order(current(8));
    pair.pass(seconds(5));
    const { signal } = pair.bound.profile.confirmedBy ?? {};
    expect([pair.drawn, signal === undefined ? 16 : pair.means[signal]]).toEqual([16, 16]);
  });

  test("that lies confirms 8 A and is measured at 16 A", () => {
    const pair = at16(profile);
    pair.made = { ...pair.made, faults: { lies: true } };
    pair.order(current(8));
    pair.pass(seconds(5));
    const { signal } = pair.bound.profile.confirmedBy ?? {};
    // The limit that openWB tells is the one in force: it cannot even lie.
    const confirmed = profile === "openwb-secondary" ? 16 : 8;
    expect([pair.telemetry.powerW, signal === undefined ? confirmed : pair.means[signal]]).toEqual([
      11_040,
      confirmed,
    ]);
  });

  test("that lags comes to it later, and in order", () => {
    const pair = at16(profile);
    pair.made = { ...pair.made, faults: { lagsBy: seconds(20) } };
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

describe("what a level of 0 or too little means to each, raw", () => {
  test("go-e keeps the old current, in silence", () => {
    for (const payload of ["0", "4", "33", "13.5", "true", '"8"'])
      expect(limitAfter("go-e-v2", "go-eCharger/000001/amp/set", payload)).toBe(16);
  });

  test("OpenEVSE clamps up to 6 A, and down to its maximum", () => {
    const topic = "openevse-a7d4/override/set";
    expect(limitAfter("openevse-override", topic, '{"charge_current":0}')).toBe(6);
    expect(limitAfter("openevse-override", topic, '{"charge_current":4}')).toBe(6);
    expect(limitAfter("openevse-override", topic, '{"charge_current":80}')).toBe(32);
  });

  test("WARP blocks at 0 and ignores what is below 6000 mA", () => {
    const topic = "warp3/AbCd/evse/external_current_update";
    expect(limitAfter("warp", topic, "0")).toBe(0);
    expect(limitAfter("warp", topic, '{"current":4000}')).toBe(16);
    expect(limitAfter("warp", topic, "8000.5")).toBe(16);
    expect(limitAfter("warp", topic, "8000")).toBe(8);
  });

  test("openWB pauses at 0 and rejects the rest below 6 A", () => {
    const topic = "openWB/set/internal_chargepoint/0/data/set_current";
    expect(limitAfter("openwb-secondary", topic, "0")).toBe(0);
    expect(limitAfter("openwb-secondary", topic, "5.9")).toBe(16);
  });

  test("evcc refuses it", () => {
    for (const payload of ["0", "5.9", "33", "", "nil"])
      expect(limitAfter("evcc", "evcc/loadpoints/1/maxCurrent/set", payload)).toBe(16);
  });

  test("EVerest imports nothing at 0 and less, whichever its interface", () => {
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

  test("SmartEVSE takes 0 for a release and ignores the rest", () => {
    const topic = "SmartEVSE/1/Set/CurrentOverride";
    expect(limitAfter("smartevse", topic, "0")).toBe(32);
    expect(limitAfter("smartevse", topic, "59")).toBe(16);
    expect(limitAfter("smartevse", topic, "321")).toBe(16);
  });

  test("Victron leaves things as they were", () => {
    const topic = "W/c0619ab1/evcharger/40/SetCurrent";
    for (const value of [0, 5, 33, 13.5, null])
      expect(limitAfter("victron-evcs", topic, JSON.stringify({ value }))).toBe(16);
  });
});

describe("what a release frees", () => {
  test("every make goes back to its own maximum", () => {
    for (const profile of MODELS.keys()) {
      const pair = at16(profile);
      pair.order(RELEASE);
      pair.pass(seconds(3));
      expect([profile, pair.drawn]).toEqual([profile, 32]);
    }
  });

  test("go-e and evcc keep the current that they were told last, whoever is their master", () => {
    const [goE, evcc] = [at16("go-e-v2"), at16("evcc")];
    goE.say("go-eCharger/000001/frc/set", "0");
    evcc.say("evcc/loadpoints/1/mode/set", "pv");
    expect([goE.limit, evcc.limit]).toEqual([16, 16]);
  });
});

describe("silence, reboots and doors", () => {
  test("openWB goes to 0 A 80 s after the last heartbeat, and stays there until it is told again", () => {
    const pair = at16("openwb-secondary");
    pair.talking = false;
    const heartbeat = pair.made.told.masterAt ?? 0;
    pair.pass(millis(heartbeat + 80_000 - pair.now));
    expect(pair.limit).toBe(16);
    pair.pass(seconds(2));
    expect(pair.limit).toBe(0);
    pair.talking = true;
    pair.pass(seconds(20));
    expect(pair.limit).toBe(0);
    pair.order(current(16));
    expect(pair.limit).toBe(16);
  });

  test("openWB takes the heartbeat's own time: a gateway that is 80 s behind is not there", () => {
    const pair = at16("openwb-secondary");
    const behind = Math.floor(pair.now / 1000) - 81;
    pair.say("openWB/set/internal_chargepoint/global_data", JSON.stringify({ heartbeat: behind }));
    pair.talking = false;
    pair.pass(seconds(1));
    expect(pair.limit).toBe(0);
  });

  test("all others hold what they were told when the gateway dies", () => {
    for (const profile of MODELS.keys()) {
      if (profile === "openwb-secondary") continue;
      const pair = at16(profile);
      pair.talking = false;
      pair.pass(seconds(300));
      expect([profile, pair.drawn]).toEqual([profile, 16]);
    }
  });

  test("a power cut takes what is in RAM only", () => {
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

  test("OpenEVSE drops its override when the vehicle leaves, unless it was told to keep it", () => {
    expect(limitAfterNextCar(at16("openevse-override"))).toBe(16);
    const forgetful = at16("openevse-override");
    forgetful.say("openevse-a7d4/override/set", '{"auto_release":true}');
    expect(limitAfterNextCar(forgetful)).toBe(32);
  });

  test("Victron says nothing a minute after the last keepalive", () => {
    const pair = at16("victron-evcs");
    pair.talking = false;
    pair.pass(seconds(90));
    pair.say("W/c0619ab1/evcharger/40/SetCurrent", '{"value":8}');
    pair.pass(seconds(5));
    expect([pair.drawn, pair.telemetry.powerW]).toEqual([8, 11_040]);
  });

  test("ocpp2mqtt rejects what is for another connector, and does not answer what it does not understand", () => {
    const pair = at16("ocpp2mqtt");
    pair.say("ocpp/charger1/cmd", '{"action":"clear_charging_profile","args":{"connector_id":2}}');
    expect(pair.refusals).toEqual(["Rejected"]);
    pair.say("ocpp/charger1/cmd", '{"action":"dance","args":{"connector_id":1}}');
    pair.say("ocpp/charger1/cmd", '{"op":"clear_charging_profile","message":{"connector_id":1}}');
    pair.say("ocpp/charger1/cmd", "not JSON");
    expect([pair.refusals, pair.limit]).toEqual([["Rejected"], 16]);
  });

  test("ocpp2mqtt blocks new sessions after each connection until it is told otherwise", () => {
    const pair = at16("ocpp2mqtt");
    pair.talking = false;
    reboot(pair);
    pair.pass(seconds(60));
    expect(pair.drawn).toBe(0);
    pair.talking = true;
    pair.pass(seconds(3));
    expect(pair.drawn).toBe(16);
  });

  test("evcc acts on a current at once only where it is told its phases too", () => {
    const raw = at16("evcc");
    raw.say("evcc/loadpoints/1/maxCurrent/set", "8");
    raw.pass(seconds(20));
    expect(raw.drawn).toBe(16);
    raw.pass(seconds(15));
    expect(raw.drawn).toBe(8);
    const driven = at16("evcc");
    driven.order(current(8));
    driven.pass(seconds(2));
    expect(driven.drawn).toBe(8);
  });

  test("evcc says online before it obeys, and refuses smart", () => {
    const pair = at16("evcc");
    reboot(pair);
    pair.say("evcc/loadpoints/1/mode/set", "off");
    pair.pass(seconds(2));
    expect(pair.drawn).toBe(16);
    pair.say("evcc/loadpoints/1/mode/set", "smart");
    expect(pair.made.told.mode).toBe("now");
  });

  test("evcc gets back what its owner had set, and is not started where it was off", () => {
    const pair = new Pair({ profile: "evcc" });
    pair.pass(seconds(2));
    pair.say("evcc/loadpoints/1/maxCurrent/set", "20");
    pair.say("evcc/loadpoints/1/mode/set", "minpv");
    pair.pass(seconds(2));
    pair.order(current(8));
    pair.pass(seconds(2));
    pair.order(RELEASE);
    pair.pass(seconds(2));
    expect([pair.made.told.mode, pair.limit]).toEqual(["minpv", 20]);
    const off = new Pair({ profile: "evcc" });
    off.pass(seconds(2));
    off.say("evcc/loadpoints/1/mode/set", "off");
    off.pass(seconds(2));
    off.order(current(8));
    off.pass(seconds(40));
    expect(off.drawn).toBe(0);
  });

  test("EVerest forgets a pause command on an empty bay, and holds to a limit of 0", () => {
    const commands = [
      ["everest-api-legacy", "everest_api/evse_manager/cmd/pause_charging"],
      ["everest-api-v1", "everest_api/1/evse_manager_consumer/evse/m2e/pause_charging"],
    ] as const;
    for (const [profile, pauseCommand] of commands) {
      const commanded = new Pair({ profile, vehicle: null });
      commanded.say(pauseCommand, "true");
      commanded.made = replugged(commanded.made, BUS, commanded.now);
      commanded.pass(seconds(5));
      expect([profile, commanded.drawn]).toEqual([profile, 32]);
      const ordered = new Pair({ profile, vehicle: null });
      ordered.order(PAUSE);
      ordered.pass(seconds(2));
      ordered.made = replugged(ordered.made, BUS, ordered.now);
      ordered.pass(seconds(5));
      expect([profile, ordered.drawn]).toEqual([profile, 0]);
      ordered.order({ kind: "power", watts: watts(6900) });
      ordered.pass(seconds(5));
      expect([profile, ordered.drawn]).toEqual([profile, 10]);
    }
  });

  test("phases can be switched where the make can", () => {
    const drawnOn: readonly (readonly [string, string, string])[] = [
      ["go-e-v2", "go-eCharger/000001/psm/set", "1"],
      ["warp", "warp3/AbCd/power_manager/external_control_update", '{"phases_wanted":1}'],
      ["evcc", "evcc/loadpoints/1/phasesConfigured/set", "1"],
      ["everest-api-legacy", "everest_api/evse_manager/cmd/set_limit_amps_phases", '{"amps":16,"phases":1}'],
      ["smartevse", "SmartEVSE/1/Set/EnableC2", "1"],
    ];
    for (const [profile, topic, payload] of drawnOn) {
      const pair = at16(profile);
      pair.say(topic, payload);
      pair.pass(seconds(3));
      expect([profile, pair.telemetry.powerW]).toEqual([profile, 3680]);
    }
    const openwb = at16("openwb-secondary");
    openwb.say("openWB/set/internal_chargepoint/0/data/phases_to_use", "1");
    openwb.say("openWB/set/internal_chargepoint/0/data/trigger_phase_switch", "true");
    openwb.pass(seconds(3));
    expect(openwb.telemetry.powerW).toBe(3680);
  });

  test("an identity that the make can tell is told", () => {
    expect(makesThatTell("rfid")).toEqual([
      "openevse-override",
      "warp",
      "openwb-secondary",
      "evcc",
      "smartevse",
    ]);
    expect(makesThatTell("name")).toEqual(["go-e-v2"]);
    expect(makesThatTell("mac")).toEqual([
      "warp",
      "openwb-secondary",
      "evcc",
      "everest-api-v1",
      "everest-api-legacy",
      "smartevse",
    ]);
  });
});

test("the clock of a charger that went back changes nothing", () => {
  const pair = at16("evcc");
  pair.now = instant(pair.now - 60_000);
  pair.pass(seconds(5));
  expect([pair.drawn, pair.made.charger.traits.id]).toEqual([16, chargerId("bay-01")]);
});
