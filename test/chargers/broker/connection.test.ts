import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Aedes } from "aedes";
import { connectAsync } from "mqtt";
import { expect, onTestFinished, test } from "vitest";

import { Connection } from "../../../src/chargers/broker/connection.ts";
import { brokerTiming, createClient } from "../../../src/chargers/broker/createClient.ts";
import { idleMs } from "../../../src/chargers/broker/inFlight.ts";
import { Mosquitto, mosquittoAvailable } from "../../support/mosquitto.ts";
import { waitFor } from "../../support/waitFor.ts";
import { PRESENCE, quick } from "../aSession.ts";
import { aScriptedBroker } from "../scriptedBroker.ts";

/** One connection to a broker that takes everything, and what it complained of. */
async function aConnection() {
  const broker = await aScriptedBroker();
  onTestFinished(() => broker[Symbol.asyncDispose]());
  return connected(broker.url, 5);
}

function connected(
  url: string,
  version: 4 | 5,
  more: { readonly window?: number; readonly waitedMs?: () => number } = {},
) {
  const timing = { ...brokerTiming, ...quick };
  const address = { url, username: null, password: () => undefined, tls: null };
  const client = createClient({
    address,
    clientId: "setpointd-depot",
    version,
    presenceTopic: PRESENCE,
    timing,
  });
  if (typeof client === "string") throw new Error(client);
  const complaints: string[] = [];
  const messages: string[] = [];
  const connection = new Connection(client, {
    version,
    filters: ["setpointd/depot/chargers/+/online", "setpointd/depot/chargers/+/telemetry"],
    presenceTopic: PRESENCE,
    window: 20,
    timing,
    ...more,
    onMessage: (topic) => messages.push(topic),
    onComplaint: (reason) => complaints.push(reason),
  });
  onTestFinished(() => connection.close());
  return { client, connection, complaints, messages };
}

test("a publish while the library disconnects is refused", async () => {
  const { client, connection } = await aConnection();
  expect(await connection.opened).toBe(true);
  client.end(false);
  expect(await connection.publish("setpointd/depot/x", "1", { retain: false })).toMatchObject({
    ok: false,
    retry: true,
  });
});

/** Publishes 20 messages at once, with as long a turn of this process before their acknowledgements. */
async function publishTwenty(connection: Connection, busyMs = 0): Promise<void> {
  const topic = "setpointd/depot/x";
  const sent = Array.from({ length: 20 }, async () => connection.publish(topic, "1", { retain: false }));
  setImmediate(() => {
    const until = performance.now() + busyMs;
    while (performance.now() < until);
  });
  await Promise.all(sent);
}

test("a process that is busy finds no broker slow: more publishes are in flight, not fewer", async () => {
  const broker = await aScriptedBroker();
  onTestFinished(() => broker[Symbol.asyncDispose]());
  const { connection } = connected(broker.url, 5, { window: 100, waitedMs: () => 0 });
  expect(await connection.opened).toBe(true);
  for (let turn = 0; turn < 3; turn += 1) await publishTwenty(connection, 300);
  expect(connection.window).toBe(80);
});

test("a broker that acknowledges slowly gets fewer publishes at once", async () => {
  let [waited, isSlow] = [0, false];
  const aedes = await Aedes.createBroker({
    authorizePublish: (_client, _packet, done) => {
      if (isSlow) waited += 1_000;
      done();
    },
  });
  const server = createServer(aedes.handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => aedes.close(() => server.close()));
  const { port } = server.address() as AddressInfo;
  const { connection } = connected(`mqtt://127.0.0.1:${port}`, 4, { window: 100, waitedMs: () => waited });
  expect(await connection.opened).toBe(true);
  await publishTwenty(connection);
  expect(connection.window).toBe(40);
  isSlow = true;
  await publishTwenty(connection);
  expect(connection.window).toBe(20);
});

test("the wait of a process does not count the time in which it is busy", () => {
  const [idle, began] = [idleMs(), performance.now()];
  while (performance.now() < began + 50);
  expect(idleMs() - idle).toBe(0);
});

test("a stop right after CONNACK is not a complaint about the broker, and the session is not reported as up", async () => {
  const { client, connection, complaints } = await aConnection();
  client.once("connect", () => void connection.close());
  expect([await connection.opened, complaints]).toEqual([false, []]);
  expect((await connection.ended).kind).toBe("stopped");
});

test("a refused subscription is a complaint that names its topics, and holds once the broker grants it", async () => {
  let isAllowed = false;
  const aedes = await Aedes.createBroker({
    authorizeSubscribe: (_client, subscription, done) =>
      done(null, !isAllowed && subscription.topic.endsWith("telemetry") ? null : subscription),
  });
  const server = createServer((socket) => void aedes.handle(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    aedes.close();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { connection, complaints } = connected(`mqtt://127.0.0.1:${port}`, 4);
  expect(await connection.opened).toBe(true);
  expect(complaints).toEqual(["subscription: refused by the broker: setpointd/depot/chargers/+/telemetry"]);
  expect(connection.refusedFilters).toEqual(["setpointd/depot/chargers/+/telemetry"]);
  isAllowed = true;
  await connection.tryFilters();
  expect(connection.refusedFilters).toEqual([]);
});

test.skipIf(!mosquittoAvailable)(
  "subscriptions that are asked for again bring no retained message once more",
  async () => {
    await using broker = await Mosquitto.start();
    const floor = await connectAsync(broker.url);
    onTestFinished(() => floor.endAsync(true));
    await floor.publishAsync("setpointd/depot/chargers/bay-01/online", "true", { qos: 1, retain: true });
    const { connection, messages } = connected(broker.url, 5);
    expect(await connection.opened).toBe(true);
    await connection.tryFilters();
    await floor.publishAsync("setpointd/depot/chargers/bay-02/telemetry", "{}", { qos: 1 });
    await waitFor(() => messages.some((topic) => topic.endsWith("bay-02/telemetry")));
    expect(messages).toEqual([
      "setpointd/depot/chargers/bay-01/online",
      "setpointd/depot/chargers/bay-02/telemetry",
    ]);
  },
);
