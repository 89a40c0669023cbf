import { pbkdf2Sync, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import type { BrokerVerdict } from "../../src/chargers/broker/tryBroker.ts";
import { anEmbeddedBroker, DAEMON } from "../support/anEmbeddedBroker.ts";
import { ask, type Daemon } from "../support/aDaemon.ts";
import { Floor } from "../support/aFloor.ts";
import { aSite, type Site } from "../support/aSite.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const USERS = { depot: "password-of-the-depot", floor: "password-of-the-floor" };
const ENV = { MQTT_PASSWORD: USERS.depot };
const FLOOR = { username: "floor", password: USERS.floor, protocolVersion: 5 } as const;
const ROOT = "setpointd/depot";
const CHARGERS = [{ id: "bay-01", current: { min: 6, max: 32 } }];
const VEHICLES = [{ id: "veh-1", charger: "bay-01" }];

interface Trials {
  readonly passed: boolean;
  readonly by: string;
  readonly brokers: readonly BrokerVerdict[];
}

async function trialOf(daemon: Daemon): Promise<Trials> {
  const { status, json } = await ask(`${daemon.operatorUrl}/api/v1/broker/trial`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"reason":"commissioning"}',
  });
  expect(status).toBe(200);
  return json as Trials;
}

const mqtt = (url: string) => ({ url, username: "depot", password: { env: "MQTT_PASSWORD" } });

const siteAt = (url: string, over = {}): Promise<Site> =>
  aSite({ over: { mqtt: mqtt(url), chargers: CHARGERS, vehicles: VEHICLES, ...over } });

/** A charger that has sent all that it sends, by the record of a broker that passes it on. */
async function reports(floor: Floor): Promise<void> {
  const of = `${ROOT}/chargers/bay-01`;
  await floor.publish(`${of}/online`, "true", true);
  await floor.publish(
    `${of}/telemetry`,
    JSON.stringify({ at: new Date().toISOString(), state: "connected" }),
  );
  await floor.publish(`${of}/ack`, '{"id":"0-0","accepted":true}');
}

/** Part of mosquitto: it answers a refused subscription in the SUBACK, which an `acl_file` does not. */
const PLUGIN = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib"]
  .map((folder) => join(folder, "mosquitto_dynamic_security.so"))
  .find((path) => existsSync(path));

const deny = (topic: string) => ({ acltype: "subscribeLiteral", topic, priority: 1, allow: false });

/** A broker whose rights its administrator, the user `floor`, may change. It refuses the daemon some subscriptions. */
async function aStrictBroker(denied: readonly string[]) {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "setpointd-dynamic-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "security.json");
  const client = (username: keyof typeof USERS, rolename: string) => {
    const salt = randomBytes(12);
    const password = pbkdf2Sync(USERS[username], salt, 101, 64, "sha512").toString("base64");
    return { username, password, salt: salt.toString("base64"), iterations: 101, roles: [{ rolename }] };
  };
  const allowed = { publishClientSend: true, publishClientReceive: true, subscribe: true, unsubscribe: true };
  const administer = { acltype: "publishClientSend", topic: "$CONTROL/#", priority: 1, allow: true };
  const roles = [
    { rolename: "daemon", acls: denied.map(deny) },
    { rolename: "administrator", acls: [administer] },
  ];
  const clients = [client("depot", "daemon"), client("floor", "administrator")];
  writeFileSync(file, JSON.stringify({ defaultACLAccess: allowed, clients, roles }));
  const broker = stack.use(
    await Mosquitto.start({
      users: USERS,
      extra: [`plugin ${PLUGIN}`, `plugin_opt_config_file ${file}`],
    }),
  );
  const floor = stack.use(await Floor.at(broker.url, FLOOR));
  const open = stack.move();
  return {
    url: broker.url,
    floor,
    allow: (topic: string) => {
      const command = { command: "removeRoleACL", rolename: "daemon", acltype: "subscribeLiteral", topic };
      return floor.publish("$CONTROL/dynamic-security/v1", JSON.stringify({ commands: [command] }));
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** Rows of the record about trials of brokers. */
const recorded = async (daemon: Daemon) =>
  (
    await daemon.view<{ words: string; facts: Partial<Trials> | null }[]>("/api/v1/audit?kind=operator")
  ).filter(({ facts }) => facts?.brokers !== undefined);

describe.skipIf(!mosquittoAvailable)("the trial of the brokers", () => {
  test("a broker with the printed list passes, no charger is commanded, and the daemon stays connected where each user is one client", async () => {
    await using printed = await siteAt("mqtt://127.0.0.1:1");
    const { stdout } = await setpointd(["acl", "-c", printed.config], { env: ENV });
    await using broker = await Mosquitto.start({
      users: USERS,
      acl: [...stdout.split("\n"), "user floor", "topic readwrite #"],
      extra: ["use_username_as_clientid true"],
    });
    await using site = await siteAt(broker.url);
    await using floor = await Floor.at(broker.url, FLOOR);
    await using daemon = await site.run(ENV);
    await reports(floor);
    await waitFor(async () => (await trialOf(daemon)).brokers[0]?.topics.allowed === 8);
    const { passed, brokers } = await trialOf(daemon);
    expect(brokers).toMatchObject([
      {
        broker: "mqtt",
        passed: true,
        isEmbedded: false,
        trouble: null,
        mqtt: "5",
        clientId: "setpointd-depot-********",
        username: "depot",
        refused: [],
        untold: [],
        unheard: [],
        acl: [],
      },
    ]);
    // Prices and reboots have never been published.
    expect([passed, brokers[0]?.topics]).toEqual([true, { allowed: 8, refused: 0, untold: 0, unused: 2 }]);
    expect(Date.parse(brokers[0]?.connectedSince ?? "")).toBeLessThan(Date.now());
    expect(new Set(floor.commands.map(({ text }) => text))).toEqual(new Set(['{"v":0}']));
    expect(floor.on("gateway/online").map(({ text }) => text)).not.toContain("false");
    expect(daemon.lines.filter(({ msg }) => msg === "broker connected")).toHaveLength(1);
  });

  test("a publish that the broker refuses is named with the line that allows it, and so is each subscription that brings no message", async () => {
    const acl = [
      "user depot",
      `topic write ${ROOT}/#`,
      `topic deny ${ROOT}/chargers/bay-01/set`,
      "user floor",
      "topic readwrite #",
    ];
    await using broker = await Mosquitto.start({ users: USERS, acl });
    await using site = await siteAt(broker.url);
    await using floor = await Floor.at(broker.url, FLOOR);
    await using daemon = await site.run(ENV);
    await reports(floor);
    const { passed, brokers } = await trialOf(daemon);
    expect([passed, brokers[0]?.refused, brokers[0]?.acl]).toEqual([
      false,
      [
        {
          access: "write",
          topic: `${ROOT}/chargers/bay-01/set`,
          found: `Publish error: Not authorized (topic ${ROOT}/chargers/bay-01/set)`,
        },
      ],
      ["user depot", `topic write ${ROOT}/chargers/+/set`],
    ]);
    // mosquitto grants each subscription, and this list passes no message on.
    const granted = "granted, and no message has come yet";
    expect(brokers[0]?.untold).toEqual(
      ["ack", "telemetry", "online"].map((leaf) => ({
        access: "read",
        topic: `${ROOT}/chargers/+/${leaf}`,
        found: expect.stringContaining(granted),
      })),
    );
    const [row] = await recorded(daemon);
    expect(row?.words).toBe("brokers tried by loopback: mqtt failed, 1 topic refused, 3 cannot be known");
    expect(row?.facts?.brokers?.[0]?.refused).toHaveLength(1);
  });

  test.skipIf(PLUGIN === undefined && !process.env["CI"])(
    "a refused subscription is named, and passes once the broker allows it",
    async () => {
      const telemetry = `${ROOT}/chargers/+/telemetry`;
      await using broker = await aStrictBroker([telemetry]);
      await using site = await siteAt(broker.url);
      await using daemon = await site.run(ENV);
      const { brokers } = await trialOf(daemon);
      expect(brokers[0]).toMatchObject({
        passed: false,
        refused: [{ access: "read", topic: telemetry, found: "the broker refuses the subscription" }],
        acl: ["user depot", `topic read ${telemetry}`],
      });
      await broker.allow(telemetry);
      await waitFor(async () => (await trialOf(daemon)).passed);
      await broker.floor.publish(`${ROOT}/chargers/bay-01/telemetry`, '{"state":"connected"}');
      await waitFor(
        async () => !(await trialOf(daemon)).brokers[0]?.untold.some(({ topic }) => topic === telemetry),
      );
    },
  );

  test("a broker that is down fails with its reason, beside one of MQTT 3.1.1, which cannot tell a refused publish, and a charger of another make", async () => {
    await using old = await anEmbeddedBroker();
    const goE = {
      id: "bay-02",
      profile: "go-e-v2",
      params: { serial: "000002" },
      current: { min: 6, max: 32 },
      broker: "yard",
    };
    await using site = await siteAt(`mqtt://127.0.0.1:${old.port}`, {
      mqtt: {
        url: `mqtt://127.0.0.1:${old.port}`,
        username: DAEMON.username,
        password: { env: "MQTT_PASSWORD" },
      },
      brokers: { yard: { url: "mqtt://127.0.0.1:1" } },
      chargers: [...CHARGERS, goE],
    });
    await using daemon = await site.start({ MQTT_PASSWORD: DAEMON.password });
    await waitFor(async () => (await trialOf(daemon)).brokers[0]?.connectedSince !== null);
    const { passed, brokers } = await trialOf(daemon);
    expect(passed).toBe(false);
    const [home, yard] = brokers;
    expect(home).toMatchObject({ broker: "mqtt", passed: true, mqtt: "3.1.1", refused: [] });
    expect(home?.untold).toContainEqual({
      access: "write",
      topic: `${ROOT}/chargers/+/set`,
      found: expect.stringContaining("cannot be known with MQTT 3.1.1"),
    });
    expect(yard).toMatchObject({
      broker: "brokers.yard",
      passed: false,
      connectedSince: null,
      mqtt: null,
      clientId: "setpointd-depot-********-yard",
      trouble: expect.stringMatching(/127\.0\.0\.1:1 cannot be reached/),
    });
  });

  test("the embedded broker passes: it has the daemon's own list", async () => {
    await using site = await siteAt("", { mqtt: { embedded: { listen: "127.0.0.1:0" } } });
    await using daemon = await site.run();
    const { passed, brokers } = await trialOf(daemon);
    expect([passed, brokers]).toMatchObject([
      true,
      [{ isEmbedded: true, mqtt: "3.1.1", refused: [], untold: [], topics: { untold: 0, unused: 0 } }],
    ]);
  });

  test("topics that command another make are not published on: its setpoint test tells", async () => {
    const goE = {
      id: "bay-01",
      profile: "go-e-v2",
      params: { serial: "000002" },
      current: { min: 6, max: 32 },
    };
    await using site = await siteAt("", { mqtt: null, chargers: [goE] });
    site.configure({ mqtt: { url: site.broker.url } });
    await using daemon = await site.run();
    const { passed, brokers } = await trialOf(daemon);
    expect(passed).toBe(true);
    expect(brokers[0]?.untold).toContainEqual({
      access: "write",
      topic: "go-eCharger/000002/amp/set",
      found: "cannot be known without a command: the setpoint test of the charger shows it",
    });
    expect(site.floor.on("/set")).toEqual([]);
  });
});
