import { expect, onTestFinished, test } from "vitest";

import { brokerTiming } from "../../src/chargers/brokerTiming.ts";
import { Connection } from "../../src/chargers/connection.ts";
import { dial } from "../../src/chargers/dial.ts";
import { PRESENCE, quick } from "./aSession.ts";
import { aScriptedBroker } from "./scriptedBroker.ts";

/** One connection to a broker that takes everything, and what it complained of. */
async function aConnection() {
  const broker = await aScriptedBroker();
  onTestFinished(() => broker[Symbol.asyncDispose]());
  const timing = { ...brokerTiming, ...quick };
  const address = { url: broker.url, username: null, password: () => undefined, tls: null };
  const client = dial({ address, clientId: "setpointd-depot", version: 5, presenceTopic: PRESENCE, timing });
  if (typeof client === "string") throw new Error(client);
  const complaints: string[] = [];
  const connection = new Connection(client, {
    version: 5,
    filters: ["setpointd/depot/chargers/+/online", "setpointd/depot/chargers/+/telemetry"],
    presenceTopic: PRESENCE,
    window: 20,
    timing,
    onMessage: () => {},
    onUnheard: () => {},
    onComplaint: (reason) => complaints.push(reason),
  });
  onTestFinished(() => connection.close());
  return { client, connection, complaints };
}

test("what is published while the library says goodbye already is refused", async () => {
  const { client, connection } = await aConnection();
  expect(await connection.opened).toBe(true);
  client.end(false);
  expect(await connection.publish("setpointd/depot/x", "1", { retain: false })).toMatchObject({
    ok: false,
    retry: true,
  });
});

test("a stop right after the broker's welcome is no complaint about the broker, and nobody is told that it is up", async () => {
  const { client, connection, complaints } = await aConnection();
  client.once("connect", () => void connection.close());
  expect([await connection.opened, complaints]).toEqual([false, []]);
  expect((await connection.ended).kind).toBe("stopped");
});
