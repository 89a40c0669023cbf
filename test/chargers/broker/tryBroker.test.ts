import { expect, test } from "vitest";

import { TopicEvidence } from "../../../src/chargers/broker/evidence.ts";
import { refusalOfSize } from "../../../src/chargers/broker/brokerAnswers.ts";
import {
  type BrokerFacts,
  judgeBroker,
  topicsAt,
  tryBroker,
} from "../../../src/chargers/broker/tryBroker.ts";
import { instant } from "../../../src/domain/units.ts";
import { aCharger } from "../../support/aCharger.ts";
import { builtIn } from "../profile/aTrial.ts";

const NOON = instant(Date.UTC(2026, 10, 26, 12));
const SET = "setpointd/depot/chargers/+/set";
const ACK = "setpointd/depot/chargers/+/ack";
const GO_E = "go-eCharger/000001/amp/set";

const opened = (): TopicEvidence => {
  const evidence = new TopicEvidence([ACK], [SET], () => NOON);
  evidence.opened();
  return evidence;
};

const judged = (facts: Partial<BrokerFacts> = {}) =>
  judgeBroker({
    name: "",
    isEmbedded: false,
    version: 5,
    clientId: "setpointd-depot-********",
    username: "depot",
    access: { write: [SET, GO_E, "setpointd/depot/prices/+"], read: [ACK] },
    commanding: new Set([GO_E]),
    refusedFilters: [],
    evidence: opened(),
    unheard: [],
    ...facts,
  });

test("a broker that refuses nothing passes, and what it does not tell is named", () => {
  expect(judged()).toEqual({
    broker: "mqtt",
    passed: true,
    isEmbedded: false,
    connectedSince: "2026-11-26T12:00:00.000Z",
    trouble: null,
    mqtt: "5",
    clientId: "setpointd-depot-********",
    username: "depot",
    topics: { allowed: 0, refused: 0, untold: 2, unused: 2 },
    refused: [],
    untold: [
      { access: "write", topic: GO_E, found: expect.stringContaining("the setpoint test") },
      { access: "read", topic: ACK, found: expect.stringContaining("no message has come yet") },
    ],
    unheard: [],
    acl: [],
  });
});

test("an accepted publish and a message that came prove their topics", () => {
  const evidence = opened();
  for (const topic of ["setpointd/depot/chargers/bay-01/set", GO_E]) evidence.published(topic, null);
  evidence.received("setpointd/depot/chargers/bay-01/ack");
  expect(judged({ evidence }).topics).toEqual({ allowed: 3, refused: 0, untold: 0, unused: 1 });
});

test("a refused charger is named beside accepted ones, with the line of the whole list", () => {
  const evidence = opened();
  evidence.published("setpointd/depot/chargers/bay-01/set", null);
  evidence.published("setpointd/depot/chargers/bay-02/set", "Not authorized");
  evidence.published(GO_E, "Not authorized");
  const { passed, refused, acl } = judged({ evidence, refusedFilters: [ACK] });
  expect([passed, refused.map(({ access, topic }) => `${access} ${topic}`), acl]).toEqual([
    false,
    ["write setpointd/depot/chargers/bay-02/set", `write ${GO_E}`, `read ${ACK}`],
    ["user depot", `topic write ${SET}`, `topic write ${GO_E}`, `topic read ${ACK}`],
  ]);
  for (const topic of ["setpointd/depot/chargers/bay-02/set", GO_E]) evidence.published(topic, null);
  expect(judged({ evidence }).passed).toBe(true);
});

test("a message that is too large for the broker is named, and no line of an access list would allow it", () => {
  const evidence = opened();
  const { reason } = refusalOfSize("setpointd/depot/chargers/bay-02/set", "[]", 30) ?? { reason: "" };
  evidence.published("setpointd/depot/chargers/bay-02/set", reason);
  const { passed, refused, acl } = judged({ evidence });
  expect([passed, refused[0]?.found, acl]).toEqual([
    false,
    "too large: 54 bytes, and the broker takes packets of at most 30 (topic setpointd/depot/chargers/bay-02/set)",
    [],
  ]);
});

test("without a user name, the lines ask for one", () => {
  const { acl, broker } = judged({ name: "yard", username: null, refusedFilters: [ACK] });
  expect([broker, acl]).toEqual([
    "brokers.yard",
    [
      "# brokers.yard.username is not set: give setpointd a user of its own.",
      "user depot",
      `topic read ${ACK}`,
    ],
  ]);
});

test("MQTT 3.1.1 tells of no publish", () => {
  const evidence = opened();
  evidence.published(GO_E, null);
  const { passed, mqtt, untold } = judged({ version: 4, evidence });
  expect([passed, mqtt, untold.filter(({ found }) => found.includes("MQTT 3.1.1")).length]).toEqual([
    true,
    "3.1.1",
    3,
  ]);
});

test("the embedded broker allows the daemon every topic", () => {
  const { passed, topics } = judged({ isEmbedded: true, version: 4 });
  expect([passed, topics]).toEqual([true, { allowed: 4, refused: 0, untold: 0, unused: 0 }]);
});

test("a broker that is not connected fails with the reason", () => {
  expect(judged({ evidence: "the broker x refuses us" })).toMatchObject({
    passed: false,
    trouble: "the broker x refuses us",
    connectedSince: null,
    mqtt: null,
  });
});

test("an answer names at most 50 topics, and counts all", () => {
  const evidence = opened();
  for (let number = 0; number < 2_000; number++)
    evidence.published(`setpointd/depot/chargers/bay-${number}/set`, "Not authorized");
  const { refused, topics } = judged({ evidence });
  expect([refused.length, topics.refused]).toEqual([50, 1_000]);
});

test("the list of a broker has the topics of its own chargers, and knows which command another make", () => {
  const options = {
    site: "depot",
    chargers: [
      aCharger({ id: "bay-01" }),
      { ...aCharger({ id: "bay-02", profile: "go-e-v2", params: { serial: "000001" } }), broker: "yard" },
    ],
    profiles: builtIn,
    onHoldMessage: () => {},
    homeAssistant: { prefix: "homeassistant", onBirth: () => {} },
  };
  const broker = {
    prefix: "setpointd",
    address: { url: "mqtt://x", username: null, password: () => undefined, tls: null },
  };
  const home = topicsAt("", broker, options);
  expect([home.access.write.includes(SET), home.commanding.size]).toEqual([true, 0]);
  expect(home.access.read).toEqual(
    expect.arrayContaining(["setpointd/depot/holds/set", "homeassistant/status"]),
  );
  const yard = topicsAt("yard", broker, options);
  expect([yard.access.write.includes(SET), yard.commanding.has(GO_E)]).toEqual([false, true]);
});

test("nothing is published at a broker of MQTT 3.1.1, which may end the connection at a refused publish", async () => {
  const published: string[] = [];
  const session = {
    connected: true,
    trouble: "",
    tryFilters: async () => {},
    tryPublish: async (topic: string, payload: string) => {
      published.push(`${topic} ${payload}`);
      return { sent: { ok: true } as const, hasSubscriber: !topic.includes("bay-02") };
    },
  };
  const options = {
    site: "depot",
    clientId: "setpointd-depot-0123abcd",
    chargers: [aCharger({ id: "bay-01" }), aCharger({ id: "bay-02" })],
    profiles: new Map(),
  };
  const broker = {
    prefix: "setpointd",
    address: { url: "mqtt://x", username: null, password: () => undefined, tls: null },
  };
  const at = (version: 4 | 5, presencePath?: string) => {
    const terms = { version, refusedFilters: [], evidence: opened() };
    const path = presencePath === undefined ? {} : { presencePath };
    return tryBroker("", broker, { ...session, terms }, { ...options, ...path });
  };
  expect((await at(4)).publishes).toEqual([]);
  expect(published).toEqual([]);
  const { verdict, publishes } = await at(5);
  expect([verdict.clientId, verdict.unheard, publishes.length]).toEqual([
    "setpointd-depot-********",
    ["setpointd/depot/chargers/bay-02/set"],
    2,
  ]);
  expect(published).toEqual([
    "setpointd/depot/gateway/online true",
    "setpointd/depot/gateway/commissioning ",
    "setpointd/depot/alarms/broker-trial ",
    'setpointd/depot/chargers/bay-01/set {"v":0}',
    'setpointd/depot/chargers/bay-02/set {"v":0}',
  ]);
  published.length = 0;
  // A verb without the daemon has a presence of its own, and does not pass for the daemon.
  await at(5, "gateway/commissioning");
  expect(published.slice(0, 2)).toEqual([
    "setpointd/depot/gateway/commissioning true",
    "setpointd/depot/alarms/broker-trial ",
  ]);
});
