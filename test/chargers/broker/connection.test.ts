import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Aedes, type AedesOptions } from "aedes";
import { connectAsync } from "mqtt";
import { expect, onTestFinished, test, vi } from "vitest";

import { Connection } from "../../../src/chargers/broker/connection.ts";
import { brokerTiming, createClient } from "../../../src/chargers/broker/createClient.ts";
import { type Millis, seconds } from "../../../src/domain/units.ts";
import { idleMs } from "../../../src/platform/cooperative.ts";
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
  more: {
    readonly window?: number;
    readonly waitedMs?: () => number;
    readonly keepalive?: Millis;
  } = {},
) {
  const { keepalive = brokerTiming.keepalive, ...others } = more;
  const timing = { ...brokerTiming, ...quick, keepalive };
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
    ...others,
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

test("retained messages of many chargers are acknowledged in one write, not in one for each", async () => {
  const retained = Array.from({ length: 20 }, (_, index) => `setpointd/depot/chargers/c${index}/online`);
  const broker = await aScriptedBroker({ retained });
  onTestFinished(() => broker[Symbol.asyncDispose]());
  const { client, connection, messages } = connected(broker.url, 5);
  const writes = vi.spyOn(client.stream as Required<Pick<Socket, "_writev">>, "_writev");
  expect(await connection.opened).toBe(true);
  expect([messages, broker.acknowledged()]).toEqual([retained, 20]);
  // CONNECT, SUBSCRIBE, and the acknowledgements with our own message.
  expect(writes.mock.calls.length).toBeLessThanOrEqual(4);
});

/** Publishes 20 messages at once, with as long a turn of this process before their acknowledgements. */
async function publishTwenty(connection: Connection, busyMs = 0): Promise<void> {
  const topic = "setpointd/depot/x";
  const sent = Array.from({ length: 20 }, async () => connection.publish(topic, "1", { retain: false }));
  setImmediate(() => standStill(busyMs));
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

/** A broker with these rules, and its URL. */
async function aBroker(rules: AedesOptions) {
  const aedes = await Aedes.createBroker(rules);
  const server = createServer(aedes.handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => aedes.close(() => server.close()));
  return { aedes, url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("a broker that acknowledges slowly gets fewer publishes at once", async () => {
  let [waited, isSlow] = [0, false];
  const { url } = await aBroker({
    authorizePublish: (_client, _packet, done) => {
      if (isSlow) waited += 1_000;
      done();
    },
  });
  const { connection } = connected(url, 4, { window: 100, waitedMs: () => waited });
  expect(await connection.opened).toBe(true);
  await publishTwenty(connection);
  expect(connection.window).toBe(40);
  isSlow = true;
  await publishTwenty(connection);
  expect(connection.window).toBe(20);
});

/** Telemetry of a large site, as a broker of MQTT 3.1.1 writes it. */
function telemetry(count: number): Buffer {
  const topic = "setpointd/depot/chargers/bay-01/telemetry";
  const body = Buffer.from(`\0${String.fromCharCode(topic.length)}${topic}${"{}".padEnd(60)}`);
  return Buffer.concat(Array(count).fill(Buffer.concat([Buffer.from([0x30, body.length]), body])));
}

/** A standstill of this process. */
const standStill = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

/** An open connection to a broker that writes the telemetry of a large site before it answers `/x`. */
async function aBusySite(keepalive = brokerTiming.keepalive) {
  const { aedes, url } = await aBroker({
    authorizePublish: (client, { topic }, done) => {
      if (topic.endsWith("/x")) client?.conn.write(telemetry(50_000));
      done();
    },
  });
  const site = connected(url, 4, { keepalive });
  expect(await site.connection.opened).toBe(true);
  return { ...site, aedes };
}

test("a process that stood still reads all that had arrived before it misses an acknowledgement", async () => {
  const { aedes, connection, messages } = await aBusySite();
  aedes.once("publish", () => standStill(2 * quick.ackDeadline));
  expect(await connection.publish("setpointd/depot/x", "1", { retain: false })).toEqual({ ok: true });
  expect(messages).toHaveLength(50_000);
});

test("a process that stood still reads all that had arrived before it finds its broker silent", async () => {
  const { aedes, client, connection } = await aBusySite(seconds(1));
  const answered = new Promise<void>((resolve) => {
    client.on("packetreceive", ({ cmd }) => cmd === "pingresp" && resolve());
  });
  aedes.once("ping", () => standStill(2_000));
  const ended = connection.ended.then(({ reason }) => reason);
  expect(await Promise.race([answered, ended])).toBeUndefined();
  expect(await connection.publish("setpointd/depot/y", "1", { retain: false })).toEqual({ ok: true });
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
  const { url } = await aBroker({
    authorizeSubscribe: (_client, subscription, done) =>
      done(null, !isAllowed && subscription.topic.endsWith("telemetry") ? null : subscription),
  });
  const { connection, complaints } = connected(url, 4);
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
