import { createHmac } from "node:crypto";

import { expect, test } from "vitest";

import { mqttClientId } from "../../../src/chargers/broker/address.ts";

test("the client id names the site, is the same for one key, and another key has another", () => {
  const key = Buffer.alloc(32, 7);
  const digest = createHmac("sha256", key).update("mqtt client id").digest("hex");
  expect(mqttClientId("depot", key)).toBe(`setpointd-depot-${digest.slice(0, 8)}`);
  expect(mqttClientId("depot", Buffer.alloc(32, 8))).not.toBe(mqttClientId("depot", key));
});
