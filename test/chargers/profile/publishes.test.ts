import { expect, test } from "vitest";
import { keepalivesOf } from "../../../src/chargers/profile/publishes.ts";
import { boundTo, NOON } from "./aTrial.ts";

test("a keepalive contains its time", () => {
  const [heartbeat] = keepalivesOf(boundTo("openwb-secondary", { parentIp: "10.0.0.5" }));
  expect(heartbeat).toMatchObject({ every: 10_000 });
  expect(heartbeat?.publishAt(NOON, true)).toEqual({
    topic: "openWB/set/internal_chargepoint/global_data",
    payload: '{"heartbeat":1795262400,"parent_ip":"10.0.0.5"}',
    qos: 1,
    retain: false,
  });
});

test("a Victron gateway is asked for all values once, and then only kept awake", () => {
  const [keepalive] = keepalivesOf(boundTo("victron-evcs", { portalId: "c0619ab1" }));
  const payloads = [true, false].map((first) => keepalive?.publishAt(NOON, first).payload);
  expect(payloads).toEqual(["", '{"keepalive-options":["suppress-republish"]}']);
});

test("EVerest gets a check every 2 s, its strictest setting being 5 s", () => {
  const [check] = keepalivesOf(boundTo("everest-api-v1", { limitsModule: "limits", evseModule: "evse" }));
  expect([check?.every, check?.publishAt(NOON, false).payload]).toEqual([2000, "true"]);
});

test("most chargers need no keepalive", () => {
  expect(keepalivesOf(boundTo("go-e-v2", { serial: "000001" }))).toEqual([]);
});
