import { expect, test } from "vitest";

import { brokerTiming, createClient, type BrokerAddress } from "../../../src/chargers/broker/createClient.ts";

/** What the library was told; nobody listens on port 1. */
function told(chosen: Partial<BrokerAddress>, version: 4 | 5 = 5) {
  const address = {
    url: "mqtt://127.0.0.1:1",
    username: null,
    password: () => undefined,
    tls: null,
    ...chosen,
  };
  const client = createClient({
    address,
    clientId: "setpointd-depot",
    version,
    presenceTopic: "p",
    timing: brokerTiming,
  });
  if (typeof client === "string") throw new Error(client);
  client.on("error", () => undefined);
  client.end(true);
  return client.options;
}

test("the library neither reconnects, nor queues, nor keeps a session", () => {
  expect(told({})).toMatchObject({
    reconnectPeriod: 0,
    queueQoSZero: false,
    clean: true,
    protocolVersion: 5,
    keepalive: 10,
    connectTimeout: 5000,
    will: { topic: "p", payload: "false", qos: 1, retain: true },
  });
  expect(told({}, 4).properties).toBeUndefined();
});

test("a url cannot smuggle in a client id or a password", () => {
  const options = told({ url: "mqtt://eve:word@127.0.0.1:1/?clientId=other" });
  expect(options.clientId).toBe("setpointd-depot");
  expect([options.username, options.password]).toEqual([undefined, undefined]);
});

test("an IPv6 address loses its brackets for a socket", () => {
  expect(told({ url: "mqtt://[::1]:1" })).toMatchObject({ host: "::1", port: 1 });
  expect(told({ url: "ws://[::1]:1/mqtt?a=b" })).toMatchObject({ host: "[::1]", path: "/mqtt?a=b" });
});

const tls = () => ({ cert: "c", key: "k" });

test("a certificate for an unencrypted connection does not change the protocol", () => {
  expect(told({ tls })).toMatchObject({ protocol: "mqtt" });
  expect(told({ tls }).cert).toBeUndefined();
});

test("the password is read at every attempt", () => {
  let asked = 0;
  const password = () => `word-${(asked += 1)}`;
  expect(told({ username: "depot", password }).password).toBe("word-1");
  expect(told({ username: "depot", password }).password).toBe("word-2");
});

test("certificates are read at every attempt (F72)", () => {
  let asked = 0;
  const renewed = () => ({ ca: `authority ${(asked += 1)}` });
  const broker = { url: "mqtts://127.0.0.1:1", tls: renewed };
  expect([told(broker).ca, told(broker).ca]).toEqual(["authority 1", "authority 2"]);
});

test.each(["http://127.0.0.1", "broker", "ssl://127.0.0.1"])("%s is not a broker", (url) => {
  expect(() => told({ url })).toThrow("not mqtt, mqtts, ws or wss");
});

test("certificates of brokers are verified, whatever NODE_TLS_REJECT_UNAUTHORIZED is", () => {
  for (const url of ["mqtts://127.0.0.1:1", "wss://127.0.0.1:1"])
    expect(told({ url }).rejectUnauthorized).toBe(true);
});
