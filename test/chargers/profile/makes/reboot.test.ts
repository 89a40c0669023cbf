import { describe, expect, test } from "vitest";

import { aTrial, builtIn } from "../aTrial.ts";
import type { Params } from "../../../../src/chargers/profile/instance.ts";

/** Makes whose documents name a message that restarts them, and its publish. */
const RESTARTED: readonly (readonly [profile: string, params: Params, publish: string])[] = [
  ["go-e-v2", { serial: "000001" }, "go-eCharger/000001/rst/set 1"],
  ["openevse-override", { base: "openevse-a7d4" }, 'openevse-a7d4/restart {"device":"gateway"}'],
  ["openevse-claim", { base: "openevse-a7d4" }, 'openevse-a7d4/restart {"device":"gateway"}'],
  ["warp", { prefix: "warp2/AbCd" }, "warp2/AbCd/reboot null"],
  ["tasmota-switch", { topic: "relay" }, "cmnd/relay/Restart 1"],
  [
    "shelly-gen2-switch",
    { prefix: "shelly1" },
    'shelly1/rpc {"id":1,"src":"setpointd","method":"Shelly.Reboot"}',
  ],
  [
    "native",
    {},
    'setpointd/site/chargers/charger/reboot {"v":1,"id":"reboot-0-1","at":"2026-11-21T12:00:00.000Z"}',
  ],
];

describe("a restart", () => {
  test.each(RESTARTED)("of %s is one message", (profile, params, publish) => {
    const charger = aTrial(profile, params);
    expect(charger.told("reboot")).toEqual([publish]);
    expect(charger.answer("reboot")).toMatchObject({ publishes: [{ qos: 1, retain: false }] });
  });

  test("of every other make is refused", () => {
    const known = new Set(RESTARTED.map(([profile]) => profile));
    const able = [...builtIn].filter(([, { actions }]) => actions.reboot.length > 0).map(([name]) => name);
    expect(new Set(able)).toEqual(known);
    const box = aTrial("ocpp2mqtt", { base: "ocpp/charger1" });
    expect(box.answer("reboot")).toEqual({
      error: "ocpp2mqtt cannot reboot: the answer to a reset looks like the answer to a setpoint",
    });
    expect(aTrial("wbec", { lp: 1 }).answer("reboot")).toEqual({ error: "wbec cannot reboot" });
  });
});

test.each<readonly [string, Params, string, unknown, string]>([
  ["go-e-v2", { serial: "000001" }, "go-eCharger/000001/fwv", '"60.0"', "60.0"],
  ["openevse-override", { base: "ev" }, "ev/config", { version: "5.1.2", firmware: "8.2" }, "5.1.2"],
  ["openevse-claim", { base: "ev" }, "ev/config", { version: "5.1.2" }, "5.1.2"],
  ["warp", { prefix: "warp2/A" }, "warp2/A/info/version", { firmware: "2.8.1", config: "2.8.0" }, "2.8.1"],
  [
    "tasmota-switch",
    { topic: "t" },
    "tele/t/INFO1",
    { Info1: { Version: "14.6.0(release)" } },
    "14.6.0(release)",
  ],
  ["ocpp2mqtt", { base: "o/1" }, "o/1/state/firmware_version", "v1.2", "v1.2"],
])("%s reports its firmware", (profile, params, topic, payload, firmware) => {
  expect(aTrial(profile, params).means(topic, payload)).toEqual({ firmware });
});

test("go-e counts its own starts", () => {
  const charger = aTrial("go-e-v2", { serial: "000001" });
  expect(charger.means("go-eCharger/000001/rbc", "41")).toEqual({ bootCount: 41 });
});

test("a native charger reports its firmware with its telemetry", () => {
  const topic = "setpointd/depot/chargers/bay-01/telemetry";
  expect(aTrial("native").means(topic, { firmware: "1.4.2" })).toEqual({ firmware: "1.4.2" });
});
