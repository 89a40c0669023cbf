import { describe, expect, test } from "vitest";
import { aTrial, profileNamed } from "../aTrial.ts";

const legacy = aTrial("everest-api-legacy", { evse: "evse_manager" });
const CMD = "everest_api/evse_manager/cmd";
const VAR = "everest_api/evse_manager/var";

const v1 = aTrial("everest-api-v1", { limitsModule: "limits", evseModule: "evse_1" });
const LIMITS = "everest_api/1/external_energy_limits_consumer/limits";
const EVSE = "everest_api/1/evse_manager_consumer/evse_1";
const AT = "2026-11-21T12:00:00.000Z";

const POWERMETER = {
  timestamp: AT,
  power_W: { total: 11_040 },
  energy_Wh_import: { total: 123_456 },
  current_A: { L1: 16, L2: 15.9, L3: 16 },
  voltage_V: { L1: 230, L2: 231, L3: 232 },
};
const MEASURED = {
  powerW: 11_040,
  energyWh: 123_456,
  currentsA: [16, 15.9, 16],
  voltagesV: [230, 231, 232],
};
const STATES: readonly (readonly [string, string])[] = [
  ["Unplugged", "unplugged"],
  ["Disabled", "paused"],
  ["Preparing", "connected"],
  ["Reserved", "unplugged"],
  ["AuthRequired", "connected"],
  ["Charging", "charging"],
  ["ChargingPausedEV", "paused"],
  ["ChargingPausedEVSE", "paused"],
  ["Finished", "finished"],
  ["FinishedEV", "finished"],
  ["FinishedEVSE", "finished"],
  ["AuthTimeout", "connected"],
];

describe("EVerest's API module", () => {
  test("takes plain amperes, and has no minimum of its own", () => {
    expect(legacy.told("setCurrent", { currentA: 13.7 })).toEqual([`${CMD}/set_limit_amps 13.7`]);
    expect(legacy.told("setCurrent", { currentA: 5.9 })).toEqual([`${CMD}/set_limit_amps 5.9`]);
    expect(legacy.told("setCurrent", { currentA: 40 })).toEqual([`${CMD}/set_limit_amps 40`]);
  });

  test("takes watts with their sign: negative ones feed back", () => {
    expect(legacy.told("setPower", { powerW: 11_040.9 })).toEqual([`${CMD}/set_limit_watts 11040`]);
    expect(legacy.told("setPower", { powerW: -5000.9 })).toEqual([`${CMD}/set_limit_watts -5000`]);
    expect(legacy.told("setPower", { powerW: 150_000 })).toEqual([`${CMD}/set_limit_watts 150000`]);
  });

  test("is held to the charger's own limits in watts too, in both directions", () => {
    const small = aTrial("everest-api-legacy", { evse: "evse_manager", maxCurrentA: 16, phases: 1 });
    expect(small.told("setPower", { powerW: 50_000 })).toEqual([`${CMD}/set_limit_watts 3680`]);
    expect(small.told("setPower", { powerW: -50_000 })).toEqual([`${CMD}/set_limit_watts -3680`]);
    expect(small.told("release")).toEqual([`${CMD}/set_limit_amps 16`]);
  });

  test("is paused by a limit of 0, which holds for every vehicle, and resumed by its level", () => {
    expect(legacy.told("pause")).toEqual([`${CMD}/set_limit_amps 0`]);
    expect(legacy.told("setCurrent", { currentA: 0 })).toEqual([`${CMD}/set_limit_amps 0`]);
    expect(legacy.told("setPower", { powerW: 0 })).toEqual([`${CMD}/set_limit_amps 0`]);
    expect(legacy.told("resume", { lastCurrentA: 13 })).toEqual([`${CMD}/set_limit_amps 13`]);
  });

  test("takes phases only together with amperes", () => {
    expect(legacy.json("setPhases", { phases: 3, lastCurrentA: 8 })).toEqual({ amps: 8, phases: 3 });
    expect(legacy.answer("setPhases", { phases: 3, lastCurrentA: 0 })).toEqual({
      error: expect.stringContaining("lastCurrentA"),
    });
  });

  test("receives the fewest amperes with its phases where the number of phases is unknown", () => {
    expect(legacy.json("setPhases", { phases: 3 })).toEqual({ amps: 6, phases: 3 });
    const small = aTrial("everest-api-legacy", { evse: "evse_manager", maxCurrentA: 5 });
    expect(small.json("setPhases", { phases: 1 })).toEqual({ amps: 5, phases: 1 });
  });

  test("reports measurements and the limit in force", () => {
    expect(legacy.means(`${VAR}/powermeter`, POWERMETER)).toEqual(MEASURED);
    expect(legacy.means(`${VAR}/limits`, { max_current: 13.7, nr_of_phases_available: 3 })).toEqual({
      limitA: 13.7,
      phases: 3,
    });
    expect(legacy.means(`${VAR}/ev_info`, { evcc_id: "02:AA:BB:00:00:01", soc: 71 })).toEqual({
      vehicleId: "02:AA:BB:00:00:01",
      vehicleIdKind: "evccid",
      socPct: 71,
    });
    expect(legacy.means(`${VAR}/datetime`, AT)).toEqual({ online: true });
  });

  test.each(STATES)("reads the state %s as %s", (said, state) => {
    expect(legacy.means(`${VAR}/session_info`, { state: said })).toMatchObject({ state });
    expect(v1.means(`${EVSE}/e2m/session_info`, { state: said })).toMatchObject({ state });
  });

  test.each(["ChargingPausedEV", "ChargingPausedEVSE"])(
    "reports %s while a vehicle is plugged in",
    (state) => {
      expect(legacy.means(`${VAR}/session_info`, { state })).toMatchObject({ plugged: true });
      expect(v1.means(`${EVSE}/e2m/session_info`, { state })).toMatchObject({ plugged: true });
    },
  );

  test("reports its session", () => {
    const session = {
      state: "Charging",
      charged_energy_wh: 1200,
      latest_total_w: 3680,
      permanent_fault: false,
    };
    const means = { state: "charging", sessionEnergyWh: 1200, powerW: 3680 };
    expect(legacy.means(`${VAR}/session_info`, session)).toMatchObject({ ...means, error: false });
    expect(v1.means(`${EVSE}/e2m/session_info`, session)).toMatchObject(means);
  });
});

const entry = (limits: object) => [{ timestamp: AT, limits_to_root: {}, limits_to_leaves: limits }];
const of = (value: number) => ({ value, source: "setpointd" });

describe("EVerest's API version 1", () => {
  test("takes amperes as a schedule of one entry that holds now", () => {
    expect(v1.answer("setCurrent", { currentA: 13.7 })).toMatchObject({
      publishes: [{ topic: `${LIMITS}/m2e/set_external_limits`, qos: 1, retain: false }],
    });
    expect(v1.json("setCurrent", { currentA: 13.7 })).toEqual({
      schedule_import: entry({ ac_max_current_A: of(13.7) }),
      schedule_export: entry({ ac_max_current_A: of(0) }),
      schedule_setpoints: [],
    });
  });

  test.each([
    [11_040, 11_040, 0],
    [-5000, 0, 5000],
  ])("takes %i W as %i W in and %i W out", (powerW, drawn, fed) => {
    expect(v1.json("setPower", { powerW })).toEqual({
      schedule_import: entry({ total_power_W: of(drawn) }),
      schedule_export: entry({ total_power_W: of(fed) }),
      schedule_setpoints: [],
    });
  });

  test("is paused by a limit of 0, which holds for every vehicle, and resumed by its level", () => {
    expect(v1.json("pause")).toMatchObject({ schedule_import: entry({ ac_max_current_A: of(0) }) });
    expect(v1.told("setCurrent", { currentA: 0 })).toEqual(v1.told("pause"));
    expect(v1.told("resume", { lastCurrentA: 13 })).toEqual(v1.told("setCurrent", { currentA: 13 }));
  });

  test("is freed by schedules without an entry, after which the fuse limit holds", () => {
    expect(v1.json("release")).toEqual({
      schedule_import: [],
      schedule_export: [],
      schedule_setpoints: [],
    });
  });

  test("has two communication checks, and each of its modules receives its own", () => {
    expect(profileNamed("everest-api-v1").keepalive).toMatchObject([
      {
        every: 2000,
        topic: expect.stringContaining("external_energy_limits_consumer/{limitsModule}/m2e/"),
        text: "true",
      },
      {
        every: 2000,
        topic: expect.stringContaining("evse_manager_consumer/{evseModule}/m2e/"),
        text: "true",
      },
    ]);
  });

  test("reports measurements, the granted limit, presence of a vehicle and its own heartbeat", () => {
    expect(v1.means(`${EVSE}/e2m/powermeter`, POWERMETER)).toEqual(MEASURED);
    expect(
      v1.means(`${EVSE}/e2m/enforced_limits`, {
        valid_for: 60,
        limits_root_side: { ac_max_current_A: { value: 10, source: "grid" } },
      }),
    ).toEqual({ limitA: 10 });
    expect(v1.means(`${EVSE}/e2m/ev_info`, { evcc_id: "02:AA:BB:00:00:01", soc: 71 })).toEqual({
      vehicleId: "02:AA:BB:00:00:01",
      vehicleIdKind: "mac",
      socPct: 71,
    });
    expect(v1.means(`${LIMITS}/e2m/heartbeat`, "42")).toEqual({ online: true });
  });
});
