import { connect } from "node:net";
import { connectAsync, type IClientOptions } from "mqtt";
import pino from "pino";
import { expect, test } from "vitest";
import { aBurst, waitingAtMost } from "../../support/aBurst.ts";
import { DAEMON, anEmbeddedBroker } from "../../support/anEmbeddedBroker.ts";
import { waitFor } from "../../support/waitFor.ts";
import { anObserver, aSession, PRESENCE, upped } from "../aSession.ts";

const listen = (port = 0) => anEmbeddedBroker({ port });
/** As the daemon connects. */
const asDaemon = { username: DAEMON.username, password: () => DAEMON.password };

test("the session falls back to MQTT 3.1.1 without reporting an outage, and reconnects after a restart", async () => {
  const broker = await listen();
  await using depot = aSession(`mqtt://127.0.0.1:${broker.port}`, asDaemon);
  await upped(depot);
  expect(depot.lines.filter(({ level }) => level >= 40)).toEqual([]);
  expect(depot.lines.find(({ msg }) => msg === "broker connected")?.mqtt).toBe("3.1.1");
  await broker[Symbol.asyncDispose]();
  await waitFor(() => depot.lines.filter(({ msg }) => msg === "broker still unreachable").length >= 5);
  await using _again = await listen(broker.port);
  await waitFor(() => depot.ups.filter((line) => line === "up").length === 2);
});

test("setpoints, retained state and presence pass through it; message expiry is ignored without harm", async () => {
  await using broker = await listen();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  await using depot = aSession(`mqtt://127.0.0.1:${broker.port}`, asDaemon);
  await upped(depot);
  await depot.session.publish("setpointd/depot/chargers/bay-01/state", "{}", { retain: true });
  await using other = await anObserver(url);
  expect(await depot.session.publish("setpointd/x", "1", { retain: false, expirySeconds: () => 5 })).toEqual({
    ok: true,
  });
  await waitFor(() => other.seen.includes("setpointd/x 1"));
  expect(other.seen).toContain("setpointd/depot/chargers/bay-01/state {}");
  expect(other.seen).toContain(`${PRESENCE} true`);
});

test("the embedded broker stops even while a client holds a connection without a CONNECT", async () => {
  const broker = await listen();
  const mute = connect({ host: "127.0.0.1", port: broker.port });
  mute.on("error", () => undefined);
  await new Promise((connected) => mute.once("connect", connected));
  await broker[Symbol.asyncDispose]();
  await waitFor(() => mute.closed);
});

test.skipIf(waitingAtMost() < 1_000)("chargers that connect all at once are accepted", async () => {
  await using broker = await listen();
  expect(await aBurst(broker.port, 900)).toBe(900);
});

test("an address in use prevents the start", async () => {
  await using broker = await listen();
  await expect(listen(broker.port)).rejects.toThrow("EADDRINUSE");
});

test("an address that the machine lacks does not prevent the start, and the daemon names it as the reason", async () => {
  await using broker = await anEmbeddedBroker({ host: "192.0.2.1" });
  expect(broker.fault).toMatch(/^listen EADDRNOTAVAIL/);
  await using depot = aSession("mqtt://127.0.0.1:9", { fault: () => broker.fault });
  await depot.session.firstAttempt;
  expect(depot.session.trouble).toMatch(/cannot be reached \(listen EADDRNOTAVAIL/);
});

test("with a configured user and password, no other client is accepted", async () => {
  const credentials = { username: "depot", password: () => "right" };
  await using broker = await anEmbeddedBroker({ credentials });
  const url = `mqtt://127.0.0.1:${broker.port}`;
  const once = { reconnectPeriod: 0, protocolVersion: 4 } as const;
  const known = await connectAsync(url, { ...once, username: "depot", password: "right" });
  await known.endAsync();
  for (const stranger of [
    {},
    { username: "depot", password: "wrong" },
    { username: "bay-01", password: "right" },
  ]) {
    await expect(connectAsync(url, { ...once, ...stranger }, false)).rejects.toThrow(/refused|authorized/i);
  }
});

const once: IClientOptions = { reconnectPeriod: 0, protocolVersion: 4 };

test("only the daemon commands a charger, and no other client disconnects it by its id", async () => {
  await using broker = await listen();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  await using depot = aSession(`mqtt://127.0.0.1:${broker.port}`, asDaemon);
  await upped(depot);
  await using observer = await anObserver(url);
  const forger = await connectAsync(url, once);
  forger.on("error", () => undefined);
  forger.publish("setpointd/depot/chargers/bay-01/set", "{}", { qos: 1 });
  await waitFor(() => !forger.connected);
  await expect(connectAsync(url, { ...once, clientId: DAEMON.clientId }, false)).rejects.toThrow(
    /refused|authorized/i,
  );
  expect(await depot.session.publish("setpointd/depot/chargers/bay-01/set", "{}", { retain: false })).toEqual(
    {
      ok: true,
    },
  );
  await waitFor(() => observer.seen.includes("setpointd/depot/chargers/bay-01/set {}"));
  expect(observer.seen.filter((line) => line.includes("/set"))).toHaveLength(1);
  expect(depot.ups.filter((line) => line === "up")).toHaveLength(1);
});

test("a client that is refused again and again does not fill the log", async () => {
  const warnings: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void warnings.push(line) });
  await using broker = await anEmbeddedBroker({ log, monotonic: () => 0 });
  for (let n = 0; n < 55; n += 1) {
    const client = await connectAsync(`mqtt://127.0.0.1:${broker.port}`, once);
    client.on("error", () => undefined);
    client.publish("setpointd/depot/chargers/bay-01/set", "{}", { qos: 1 });
    await waitFor(() => !client.connected);
  }
  expect(warnings).toHaveLength(50);
  expect(warnings[0]).toContain("publish refused");
});

test("another client cannot impersonate a connected charger; the charger itself can reconnect", async () => {
  await using broker = await listen();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  const online = "setpointd/depot/chargers/bay-01/online";
  const will = { topic: online, payload: Buffer.from("false"), qos: 1, retain: true } as const;
  const charger = await connectAsync(url, { ...once, clientId: "box-1", will });
  await charger.publishAsync(online, "true", { qos: 1, retain: true });
  const other = await connectAsync(url, { ...once, clientId: "box-2" });
  other.on("error", () => undefined);
  other.publish("setpointd/depot/chargers/bay-01/telemetry", "{}", { qos: 1 });
  await waitFor(() => !other.connected);
  charger.stream.destroy();
  const replacement = await connectAsync(url, { ...once, clientId: "box-3" });
  await using observer = await anObserver(url);
  await waitFor(() => observer.seen.includes(`${online} false`));
  await replacement.publishAsync(online, "true", { qos: 1, retain: true });
  await waitFor(() => observer.seen.includes(`${online} true`));
  await replacement.endAsync();
});

test("an unauthenticated client cannot fill its buffers: a large first packet, too many connections", async () => {
  await using broker = await anEmbeddedBroker({ mostConnections: 3 });
  const large = connect({ host: "127.0.0.1", port: broker.port });
  large.on("error", () => undefined);
  // CONNECT with a remaining length of 200 MB.
  large.write(Buffer.from([0x10, 0x80, 0xc2, 0xd7, 0x2f, 0, 4]));
  await waitFor(() => large.closed);
  const sockets = Array.from({ length: 5 }, () => connect({ host: "127.0.0.1", port: broker.port }));
  for (const socket of sockets) socket.on("error", () => undefined);
  await waitFor(() => sockets.filter(({ closed }) => closed).length === 2);
  for (const socket of sockets) socket.destroy();
});

test.each([
  ["retained and not, of one client", [true, false], [0, 0]],
  ["retained and not, with acknowledgement", [true, false], [1, 1]],
  ["with and without acknowledgement", [false, false], [1, 0]],
] as const)("of a burst of messages, %s, each arrives", async (_, retained, qos) => {
  await using broker = await listen();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  const listener = await connectAsync(url, once);
  const arrived: string[] = [];
  listener.on("message", (topic) => arrived.push(topic));
  await listener.subscribeAsync("yard/#", { qos: 1 });
  const charger = await connectAsync(url, once);
  for (let message = 0; message < 40; message += 1)
    charger.publish(`yard/${message}`, "1", {
      retain: retained[message % 2] ?? false,
      qos: qos[message % 2] ?? 0,
    });
  await charger.publishAsync("yard/last", "1", { qos: 1 });
  await waitFor(() => arrived.includes("yard/last"));
  await charger.endAsync();
  await listener.endAsync();
  expect(new Set(arrived).size).toBe(41);
});
