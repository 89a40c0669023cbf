import { readFileSync } from "node:fs";

import { connectAsync } from "mqtt";
import { describe, expect, test } from "vitest";

import { Floor } from "../support/aFloor.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";

const PAGE = readFileSync(new URL("../../docs/chargers.md", import.meta.url), "utf8");
/** The list that operators are told to give their broker, for the site of the tests. */
const ACL = (/```text\n(user depot\n[\s\S]*?)```/.exec(PAGE)?.[1] ?? "").replaceAll("depot-north", "depot");
const USERS = { depot: "one", "bay-01": "two", "bay-02": "three", intruder: "four" };
const as = (username: keyof typeof USERS) => ({ username, password: USERS[username] });
const MINUTE = 60_000;

describe.skipIf(!mosquittoAvailable)("a broker with the access list of docs/chargers.md", () => {
  test.each([4, 5] as const)(
    "F94: over MQTT version %i only the gateway can command a charger, and no client can pass for another charger",
    async (protocolVersion) => {
      await using broker = await Mosquitto.start({ users: USERS, acl: ACL.split("\n") });
      const over = { mqtt: { url: broker.url, username: "depot", password: { env: "MQTT_PASSWORD" } } };
      await using site = await aSite({ over });
      const connected = (user: keyof typeof USERS): Promise<Floor> =>
        Floor.at(broker.url, { ...as(user), protocolVersion });
      await using charger = await Floor.at(broker.url, { ...as("bay-01"), protocolVersion });
      await using neighbour = await connected("bay-02");
      await using intruder = await connected("intruder");
      await using daemon = await site.run({ MQTT_PASSWORD: USERS.depot });
      await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE }));
      const told = await charger.nth("bay-01", 1);

      const base = "setpointd/depot/chargers/bay-01";
      const forged = JSON.stringify({ ...told.set, id: "9999999999-1", epoch: 9_999_999_999, value: 32 });
      const lie = JSON.stringify({ at: new Date().toISOString(), state: "charging", limitA: 31 });
      for (const client of [intruder, neighbour]) {
        // With MQTT 5 the refusal is told, with 3.1.1 the message just goes nowhere.
        for (const topic of [`${base}/set`, `${base}/telemetry`, `${base}/online`, `${base}/state`])
          await client.publish(topic, topic.endsWith("/set") ? forged : lie).catch(() => undefined);
      }
      // A charger cannot tell itself anything either.
      await charger.publish(`${base}/set`, forged).catch(() => undefined);
      await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE, amperes: 10 }));
      await charger.nth("bay-01", 2);
      expect(charger.told("bay-01")).toEqual(["16 A EV-1", "10 A EV-1"]);
      for (const { heard } of [neighbour, intruder])
        expect(heard.filter(({ topic }) => topic.startsWith(base))).toEqual([]);
      const [bay] = await daemon.view<object[]>("/api/v1/chargers");
      expect(bay).toMatchObject({ charger: "bay-01", measured: null, online: null });
    },
    60_000,
  );

  test.each([
    ["without a name", {}],
    ["with a wrong password", { username: "depot", password: "two" }],
  ])("F94: %s no client gets in", async (_, credentials) => {
    await using broker = await Mosquitto.start({ users: USERS, acl: ACL.split("\n") });
    const refused = connectAsync(
      broker.url,
      { protocolVersion: 5, reconnectPeriod: 0, ...credentials },
      false,
    );
    await expect(refused).rejects.toThrow("Not authorized");
  });
});
