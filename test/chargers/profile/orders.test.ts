import { expect, test } from "vitest";
import { ordersFor, type Standing } from "../../../src/chargers/profile/orders.ts";
import type { Params } from "../../../src/chargers/profile/bind.ts";
import type { Desired } from "../../../src/core/control/setpoint.ts";
import { amperes, watts } from "../../../src/core/units.ts";
import { boundTo, NOON } from "./aTrial.ts";

const AT_13: Desired = { kind: "current", amperes: amperes(13.7) };
const FREE: Desired = { kind: "release" };

/** The last level of each topic, and the payload. */
function said(profile: string, params: Params, desired: Desired, standing: Partial<Standing>) {
  const orders = ordersFor(
    desired,
    { acquired: true, paused: false, ...standing },
    boundTo(profile, params),
    NOON,
  );
  if (!orders.ok) return orders.reason;
  return orders.publishes.map(({ topic, payload }) => `${topic.split("/").at(-1)} ${payload}`);
}

const goE = { serial: "000001" };
const smartevse = { prefix: "S" };

test("a charger that runs is told no more than its level", () => {
  expect(said("go-e-v2", goE, AT_13, {})).toEqual(["set 13"]);
});

test("the level is set before a pause ends, so nothing is drawn at the old one", () => {
  const orders = ordersFor(AT_13, { acquired: true, paused: true }, boundTo("go-e-v2", goE), NOON);
  expect(orders).toMatchObject({
    publishes: [
      { topic: "go-eCharger/000001/amp/set", payload: "13" },
      { topic: "go-eCharger/000001/frc/set", payload: "2" },
    ],
    standing: { acquired: true, paused: false },
  });
});

test("where a level counts only after the pause, it comes after it", () => {
  expect(said("smartevse", smartevse, AT_13, { paused: true })).toEqual([
    "Mode Normal",
    "CurrentOverride 137",
  ]);
});

test("where the level ends the pause, it is said once", () => {
  expect(said("warp", { prefix: "w" }, AT_13, { paused: true })).toEqual([
    'external_current_update {"current":13700}',
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

test("a level below the minimum is a pause, and the charger stands paused", () => {
  const orders = ordersFor(
    { kind: "current", amperes: amperes(5) },
    { acquired: true, paused: true },
    boundTo("go-e-v2", goE),
    NOON,
  );
  expect(orders).toMatchObject({
    publishes: [{ payload: "1" }],
    standing: { acquired: true, paused: true },
  });
});

test("a release ends the pause first where it does not do so by itself", () => {
  expect(said("smartevse", smartevse, FREE, { paused: true })).toEqual([
    "Mode Normal",
    "CurrentOverride 160",
    "CurrentOverride 0",
  ]);
  expect(said("victron-evcs", { portalId: "p" }, FREE, { paused: true })).toEqual([
    'StartStop {"value":1}',
    'Mode {"value":1}',
  ]);
  expect(said("go-e-v2", goE, FREE, { paused: true })).toEqual(["set 0", "set 32"]);
});

test("a limit that would stay after a release is raised behind it", () => {
  const orders = ordersFor(FREE, { acquired: false, paused: false }, boundTo("go-e-v2", goE), NOON);
  expect(orders).toMatchObject({
    publishes: [
      { topic: "go-eCharger/000001/frc/set", payload: "0" },
      { topic: "go-eCharger/000001/amp/set", payload: "32" },
    ],
  });
});

test("watts after a pause are not replaced by amperes", () => {
  const power: Desired = { kind: "power", watts: watts(11_040) };
  const cmd = said("ocpp2mqtt", { base: "o" }, power, { paused: true });
  expect(cmd).toEqual([expect.stringContaining('"charging_rate_unit":"W"')]);
  expect(said("pulsatrix", { clientId: "c" }, power, { paused: true })).toEqual([
    "powerLimit 11040",
    "amperageLimit 80",
  ]);
  expect(said("go-e-v2", goE, power, { paused: true })).toEqual(["set 16", "set 2"]);
  expect(said("go-e-v2", goE, { kind: "power", watts: watts(-5000) }, {})).toEqual(["set 1"]);
});

test("what a make cannot do is said, not half done", () => {
  expect(said("twcmanager", { twc: "AB12" }, { kind: "pause" }, {})).toContain("cannot pause");
});
