import { expect, test } from "vitest";
import { ordersFor, type DriverKnowledge } from "../../../src/chargers/profile/orders.ts";
import type { Params } from "../../../src/chargers/profile/instance.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import { amperes, watts } from "../../../src/domain/units.ts";
import { aTrial, boundTo, NOON } from "./aTrial.ts";

const AT_13: Desired = { kind: "current", amperes: amperes(13.7) };
const FREE: Desired = { kind: "release" };

/** The last level of each topic, and the payload. */
function said(profile: string, params: Params, desired: Desired, standing: Partial<DriverKnowledge>) {
  const orders = ordersFor(
    desired,
    { acquired: true, pause: "none", phases: null, ...standing },
    boundTo(profile, params),
    NOON,
  );
  if (!orders.ok) return orders.reason;
  return orders.publishes.map(({ topic, payload }) => `${topic.split("/").at(-1)} ${payload}`);
}

const goE = { serial: "000001" };
const smartevse = { prefix: "S" };

test("a charger that charges gets only its level", () => {
  expect(said("go-e-v2", goE, AT_13, {})).toEqual(["set 13"]);
});

test("the level is set before a pause ends, so nothing is drawn at the old one", () => {
  const orders = ordersFor(
    AT_13,
    { acquired: true, pause: "sent", phases: null },
    boundTo("go-e-v2", goE),
    NOON,
  );
  expect(orders).toMatchObject({
    publishes: [
      { topic: "go-eCharger/000001/amp/set", payload: "13" },
      { topic: "go-eCharger/000001/frc/set", payload: "2" },
    ],
    after: { acquired: true, pause: "ending" },
  });
});

test("a level follows the resume where it counts only after it", () => {
  expect(said("smartevse", smartevse, AT_13, { pause: "sent" })).toEqual([
    "Mode Normal",
    "CurrentOverride 137",
  ]);
});

test("a level comes last where the resume restores the old one", () => {
  expect(said("wbec", { lp: 1 }, AT_13, { pause: "sent" })).toEqual(["enable true", "maxcurrent 13.7"]);
  expect(said("wbec", { lp: 1 }, FREE, { pause: "sent" })).toEqual(["enable true", "maxcurrent 16"]);
});

test("a resuming level is sent once where a level ends the pause", () => {
  expect(said("warp", { prefix: "w" }, AT_13, { pause: "sent" })).toEqual([
    'external_current_update {"current":13700}',
  ]);
});

test("a pause that takes control by itself is sent alone: no message allows charging first", () => {
  const PAUSED: Desired = { kind: "pause" };
  expect(said("smartevse", smartevse, PAUSED, { acquired: false })).toEqual(["Mode Pause"]);
  expect(said("victron-evcs", { portalId: "p", instance: 40 }, PAUSED, { acquired: false })).toEqual([
    'Mode {"value":0}',
    'StartStop {"value":0}',
  ]);
});

test("control is taken once, before the first level", () => {
  expect(said("smartevse", smartevse, AT_13, { acquired: false })).toEqual([
    "Mode Normal",
    "CurrentOverride 137",
  ]);
  expect(said("victron-evcs", { portalId: "p" }, { kind: "pause" }, { acquired: false })).toEqual([
    'Mode {"value":0}',
    'StartStop {"value":0}',
  ]);
});

test.each([
  ["evcc", "maxCurrent/set 10", "mode/set now", "mode/set off"],
  ["openwb-simpleapi", "4/chargecurrent 10", "4/chargemode instant", "4/chargemode stop"],
])(
  "a limit comes first where acquiring control of %s starts charging, and a pause needs no control",
  (...words) => {
    const [profile, limit, control, paused] = words;
    const told = (desired: Desired, standing: Partial<DriverKnowledge>) =>
      levelled(profile, { id: 4 }, desired, standing);
    expect(told(AT_10, { acquired: false })).toEqual([limit, control]);
    expect(told(AT_10, { acquired: true })).toEqual([limit]);
    expect(told(PAUSE, { acquired: false })).toEqual([paused]);
    expect(told({ kind: "current", amperes: amperes(4) }, { acquired: false })).toEqual([paused]);
    for (const pause of ["sent", "ending"] as const)
      expect(told(AT_10, { acquired: true, pause })).toEqual([limit, control]);
  },
);

test("phases of a charger whose control starts charging are switched in a pause, before its limit", () => {
  expect(levelled("evcc", { id: 4 }, on(1, AT_10), { acquired: false })).toEqual([
    "mode/set off",
    "phasesConfigured/set 1",
    "maxCurrent/set 10",
    "mode/set now",
  ]);
});

test("a level below the minimum is a pause, and the charger stands paused", () => {
  const orders = ordersFor(
    { kind: "current", amperes: amperes(5) },
    { acquired: true, pause: "sent", phases: null },
    boundTo("go-e-v2", goE),
    NOON,
  );
  expect(orders).toMatchObject({
    publishes: [{ payload: "1" }],
    after: { acquired: true, pause: "sent" },
  });
});

test("a release ends the pause first if it does not do so itself", () => {
  expect(said("smartevse", smartevse, FREE, { pause: "sent" })).toEqual([
    "Mode Normal",
    "CurrentOverride 160",
    "CurrentOverride 0",
  ]);
  expect(said("victron-evcs", { portalId: "p" }, FREE, { pause: "sent" })).toEqual([
    'StartStop {"value":1}',
    'Mode {"value":1}',
    'SetCurrent {"value":32}',
  ]);
  expect(said("go-e-v2", goE, FREE, { pause: "sent" })).toEqual(["set 0", "set 32"]);
});

test("a limit that would stay after a release is raised after it", () => {
  const orders = ordersFor(
    FREE,
    { acquired: false, pause: "none", phases: null },
    boundTo("go-e-v2", goE),
    NOON,
  );
  expect(orders).toMatchObject({
    publishes: [
      { topic: "go-eCharger/000001/frc/set", payload: "0" },
      { topic: "go-eCharger/000001/amp/set", payload: "32" },
    ],
  });
});

test("watts after a pause are not replaced by amperes", () => {
  const power: Desired = { kind: "power", watts: watts(11_040) };
  const cmd = said("ocpp2mqtt", { base: "o" }, power, { pause: "sent" });
  expect(cmd).toEqual([expect.stringContaining('"charging_rate_unit":"W"')]);
  expect(said("pulsatrix", { clientId: "c" }, power, { pause: "sent" })).toEqual([
    "powerLimit 11040",
    "amperageLimit 80",
  ]);
  expect(said("go-e-v2", goE, power, { pause: "sent" })).toEqual(["set 16", "set 2"]);
  expect(said("go-e-v2", goE, { kind: "power", watts: watts(-5000) }, {})).toEqual(["set 1"]);
});

test("decided watts are not a pause: a vehicle on one phase charges with less", () => {
  const power: Desired = { kind: "power", watts: watts(3000) };
  expect(said("pulsatrix", { clientId: "c" }, power, {})).toEqual(["powerLimit 3000"]);
  expect(said("ocpp2mqtt", { base: "o" }, power, {})).toEqual([expect.stringContaining('"limit":3000')]);
  expect(aTrial("pulsatrix", { clientId: "c" }).told("setPower", { powerW: 3000 })).toEqual([
    "pulsatrix/secc/c/charging/amperageLimit 0",
  ]);
  const nothing: Desired = { kind: "power", watts: watts(0.5) };
  expect(said("pulsatrix", { clientId: "c" }, nothing, {})).toEqual(["amperageLimit 0"]);
});

const on = (count: 1 | 3, desired: Desired & { readonly kind: "current" | "pause" }): Desired => ({
  ...desired,
  phases: { count, since: NOON, chargingSince: null },
});
const AT_10 = { kind: "current", amperes: amperes(10) } as const;
const PAUSE = { kind: "pause" } as const;
const levelled = (profile: string, params: Params, desired: Desired, standing: Partial<DriverKnowledge>) => {
  const orders = ordersFor(
    desired,
    { acquired: true, pause: "none", phases: null, ...standing },
    boundTo(profile, params),
    NOON,
  );
  if (!orders.ok) return orders.reason;
  return orders.publishes.map(({ topic, payload }) => `${topic.split("/").slice(-2).join("/")} ${payload}`);
};

test("phases are switched in a pause, and the level follows", () => {
  expect(levelled("go-e-v2", goE, on(1, PAUSE), { pause: "sent" })).toEqual(["frc/set 1", "psm/set 1"]);
  expect(levelled("go-e-v2", goE, on(1, AT_10), { pause: "sent", phases: 1 })).toEqual([
    "amp/set 10",
    "frc/set 2",
  ]);
  expect(levelled("go-e-v2", goE, on(1, AT_10), { phases: 1 })).toEqual(["amp/set 10"]);
  const box = { parentIp: "192.0.2.1" };
  expect(levelled("openwb-secondary", box, on(3, PAUSE), { pause: "sent", phases: 1 })).toEqual([
    "data/set_current 0",
    "data/phases_to_use 3",
    "data/trigger_phase_switch true",
  ]);
});

test("a level for a charger with unknown phases gets a pause of its own", () => {
  expect(levelled("smartevse", smartevse, on(1, AT_10), { acquired: false })).toEqual([
    "Set/Mode Pause",
    "Set/EnableC2 1",
    "Set/Mode Normal",
    "Set/CurrentOverride 100",
  ]);
  const orders = ordersFor(
    on(1, AT_10),
    { acquired: true, pause: "sent", phases: null },
    boundTo("go-e-v2", goE),
    NOON,
  );
  expect(orders).toMatchObject({ after: { pause: "ending", phases: 1 } });
});

test("a release restores all phases, if they were switched", () => {
  expect(levelled("go-e-v2", goE, FREE, { phases: 1 })).toEqual([
    "frc/set 1",
    "psm/set 2",
    "frc/set 0",
    "amp/set 32",
  ]);
  expect(levelled("warp", { prefix: "w" }, FREE, { phases: 1, pause: "sent" })).toEqual([
    'power_manager/external_control_update {"phases_wanted":3}',
    'evse/external_current_update {"current":32000}',
  ]);
  expect(levelled("go-e-v2", goE, FREE, { phases: 3 })).toEqual(["frc/set 0", "amp/set 32"]);
});

test("each level has both amperes and phases where they share a message, and watts use all phases again", () => {
  const evse = { evse: "e" };
  const told = (desired: Desired, standing: Partial<DriverKnowledge>) =>
    levelled("everest-api-legacy", evse, desired, standing);
  expect(told(on(1, PAUSE), { pause: "sent" })).toEqual(["cmd/set_limit_amps 0"]);
  expect(told(on(1, AT_10), { pause: "sent", phases: 1 })).toEqual([
    'cmd/set_limit_amps_phases {"amps":10,"phases":1}',
  ]);
  expect(told(on(1, AT_10), { phases: 1 })).toEqual(['cmd/set_limit_amps_phases {"amps":10,"phases":1}']);
  const power: Desired = { kind: "power", watts: watts(6900) };
  expect(told(power, { phases: 1 })).toEqual(["cmd/set_limit_watts 6900"]);
  // A limit in amperes behind the one in watts would replace it.
  expect(told(power, { pause: "sent" })).toEqual(["cmd/set_limit_watts 6900"]);
});

test("an impossible command fails whole, with its reason", () => {
  expect(said("twcmanager", { twc: "AB12" }, { kind: "pause" }, {})).toContain("cannot pause");
});
