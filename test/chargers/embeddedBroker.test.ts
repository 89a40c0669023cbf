import { connect } from "node:net";
import { connectAsync } from "mqtt";
import { expect, test } from "vitest";
import { EmbeddedBroker } from "../../src/chargers/embeddedBroker.ts";
import { waitFor } from "../support/waitFor.ts";
import { aLog, anObserver, aSession, PRESENCE, upped } from "./aSession.ts";

const listen = (port = 0) =>
  EmbeddedBroker.listen({ host: "127.0.0.1", port, credentials: null, log: aLog().log });

test("the session falls back to MQTT 3.1.1, without calling that an outage, and finds it again after a restart", async () => {
  const broker = await listen();
  await using depot = aSession(`mqtt://127.0.0.1:${broker.port}`);
  await upped(depot);
  expect(depot.lines.filter(({ level }) => level >= 40)).toEqual([]);
  expect(depot.lines.find(({ msg }) => msg === "broker connected")?.mqtt).toBe("3.1.1");
  await broker[Symbol.asyncDispose]();
  await waitFor(() => depot.lines.filter(({ msg }) => msg === "broker still unreachable").length >= 5);
  await using _again = await listen(broker.port);
  await waitFor(() => depot.ups.filter((line) => line === "up").length === 2);
});

test("setpoints, retained state and presence pass through it; an expiry that it cannot know does no harm", async () => {
  await using broker = await listen();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  await using depot = aSession(url);
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

test("it stops even while somebody holds a connection without saying a word", async () => {
  const broker = await listen();
  const mute = connect({ host: "127.0.0.1", port: broker.port });
  mute.on("error", () => undefined);
  await new Promise((connected) => mute.once("connect", connected));
  await broker[Symbol.asyncDispose]();
  await waitFor(() => mute.closed);
});

test("a taken address is a reason not to start", async () => {
  await using broker = await listen();
  await expect(listen(broker.port)).rejects.toThrow("EADDRINUSE");
});

test("where a user and a password are configured, nobody else gets in", async () => {
  const credentials = { username: "depot", password: () => "right" };
  await using broker = await EmbeddedBroker.listen({
    host: "127.0.0.1",
    port: 0,
    credentials,
    log: aLog().log,
  });
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
