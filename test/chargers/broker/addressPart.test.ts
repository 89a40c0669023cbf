import { expect, test } from "vitest";

import { addressOf } from "../../../src/chargers/broker/address.ts";
import type { BrokerConfig } from "../../../src/config/sections/mqtt.ts";

const broker = (reach: BrokerConfig["reach"]): BrokerConfig => ({
  reach,
  username: "depot",
  password: () => "s",
  tls: { ca: { current: () => "the authority", fault: () => null }, own: null },
  prefix: "setpointd",
});

test("a broker elsewhere is reached by its url, with the configured certificates", () => {
  const address = addressOf(broker({ kind: "url", url: "mqtts://broker.example" }), null);
  expect(address).toMatchObject({
    url: "mqtts://broker.example",
    username: "depot",
  });
  expect(address.tls?.()).toEqual({ ca: "the authority" });
});

test.each([
  ["0.0.0.0", "mqtt://127.0.0.1:2000"],
  ["::", "mqtt://[::1]:2000"],
  ["192.0.2.7", "mqtt://192.0.2.7:2000"],
  ["::1", "mqtt://[::1]:2000"],
])("the embedded broker, listening on %s, is reached at %s", (host, url) => {
  const inside = { port: 2000, username: "setpointd", password: "drawn at each start", fault: () => null };
  const address = addressOf(broker({ kind: "embedded", listen: { host, port: 0 } }), inside);
  expect([address.url, address.username, address.password()]).toEqual([
    url,
    inside.username,
    inside.password,
  ]);
});
