import { createServer as createWebServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { Aedes } from "aedes";
import { describe, expect, test } from "vitest";
import { millis, minutes } from "../../../src/domain/units.ts";
import { SharedPlaces } from "../../../src/platform/cooperative.ts";
import { freePort } from "../../support/freePort.ts";
import { Mosquitto, mosquittoAvailable } from "../../support/mosquitto.ts";
import { waitFor } from "../../support/waitFor.ts";
import { anObserver, aSession, PRESENCE, upped } from "../aSession.ts";
import { aScriptedBroker } from "../scriptedBroker.ts";

const live = { retain: false };

describe.skipIf(!mosquittoAvailable)("a broker session with mosquitto", () => {
  test("connects when the broker appears, and logs the outage once", async () => {
    const port = await freePort();
    let absences = 0;
    await using depot = aSession(`mqtt://127.0.0.1:${port}`, { onAbsent: () => (absences += 1) });
    await waitFor(() => depot.lines.filter(({ msg }) => msg === "broker still unreachable").length >= 3);
    expect(await depot.session.publish("a", "1", live)).toEqual({
      ok: false,
      retry: true,
      reason: "broker not connected",
    });
    await using _broker = await Mosquitto.start({ port });
    await upped(depot);
    expect([absences, depot.ups]).toEqual([1, ["up"]]);
    expect(depot.lines.filter(({ msg }) => msg === "broker unreachable, retrying")).toHaveLength(1);
    expect(depot.lines.filter(({ msg }) => msg === "broker connected")).toMatchObject([{ mqtt: "5" }]);
    expect(depot.lines.find(({ level }) => level === 40)?.reason).toContain("ECONNREFUSED");
  });

  test("gateways that lost their broker together reconnect at random times", async () => {
    const port = await freePort();
    const slow = { backoffFloor: minutes(10), backoffCeiling: minutes(10) };
    // Shares of ten minutes: 1.2 s, and then none.
    const shares = [0.002];
    await using depot = aSession(`mqtt://127.0.0.1:${port}`, {
      random: () => shares.shift() ?? 0,
      timing: slow,
    });
    await waitFor(() => shares.length === 0);
    const began = performance.now();
    await using _broker = await Mosquitto.start({ port });
    await upped(depot);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  test("each new reason of one outage is logged once, and a refusal with the keys to check", async () => {
    const port = await freePort();
    let absences = 0;
    await using depot = aSession(`mqtt://127.0.0.1:${port}`, {
      onAbsent: () => (absences += 1),
      username: "depot",
      password: () => "wrong",
      section: "brokers.yard",
    });
    const warned = () => depot.lines.filter(({ level }) => level >= 40).map(({ msg }) => msg);
    await waitFor(() => warned().length === 1);
    expect(depot.session.trouble).toBe(
      `the broker 127.0.0.1:${port} cannot be reached (connect ECONNREFUSED 127.0.0.1:${port})`,
    );
    const quiet = () => depot.lines.filter(({ msg }) => msg === "broker still unreachable").length;
    await using _broker = await Mosquitto.start({ port, users: { depot: "right" } });
    await waitFor(() => depot.session.trouble.includes("refuses us"));
    const before = quiet();
    await waitFor(() => quiet() >= before + 3);
    const refused = `the broker 127.0.0.1:${port} refuses us (Not authorized): check brokers.yard.username and brokers.yard.password`;
    // Between the two it may have been listening without answering yet.
    expect(warned().filter((msg) => msg === refused)).toHaveLength(1);
    expect([absences, depot.ups, depot.session.trouble]).toEqual([1, [], refused]);
    expect(depot.logText()).not.toContain("wrong");
  });

  test("retained messages arrive before the session is up", async () => {
    await using broker = await Mosquitto.start();
    await using other = await anObserver(broker.url);
    await other.client.publishAsync("setpointd/depot/chargers/bay-01/online", "true", {
      qos: 1,
      retain: true,
    });
    const order: string[] = [];
    await using depot = aSession(broker.url, {
      onUp: () => order.push("up"),
      onMessage: (topic, _, retained) => order.push(`${topic} ${retained}`),
    });
    await upped(depot);
    await other.client.publishAsync("setpointd/depot/chargers/bay-01/online", "false", {
      qos: 1,
      retain: true,
    });
    await waitFor(() => order.length === 3);
    expect(order).toEqual([
      "setpointd/depot/chargers/bay-01/online true",
      "up",
      "setpointd/depot/chargers/bay-01/online false",
    ]);
  });

  test("a publish right after the start waits for the first attempt", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    expect(await depot.session.publish("a", "1", live)).toEqual({ ok: true });
    expect(depot.ups).toEqual(["up"]);
  });

  test("a publish right after the start fails with the first attempt if there is no broker", async () => {
    await using depot = aSession(`mqtt://127.0.0.1:${await freePort()}`);
    expect(await depot.session.publish("a", "1", live)).toMatchObject({ ok: false, retry: true });
  });

  test("publishes true when connected and false at an orderly stop", async () => {
    await using broker = await Mosquitto.start();
    await using other = await anObserver(broker.url);
    {
      await using depot = aSession(broker.url);
      await upped(depot);
      await waitFor(() => other.seen.includes(`${PRESENCE} true`));
    }
    await waitFor(() => other.seen.includes(`${PRESENCE} false`));
    expect(other.seen).toEqual([`${PRESENCE} true`, `${PRESENCE} false`]);
  });

  test("the last will publishes false when the session is cut off", async () => {
    await using broker = await Mosquitto.start();
    await using other = await anObserver(broker.url);
    await using depot = aSession(broker.url, { timing: { takenOverPause: millis(60_000) } });
    await upped(depot);
    // A second client with our id: mosquitto throws ours out and publishes its will.
    await using _intruder = aSession(broker.url, { presenceTopic: "elsewhere" });
    await waitFor(() => other.seen.includes(`${PRESENCE} false`));
  });

  test("F84: two gateways with one id disconnect each other ever more rarely, even without a reason from the broker", async () => {
    await using broker = await Mosquitto.start();
    const timing = { backoffFloor: millis(50), backoffCeiling: millis(60_000) };
    await using depot = aSession(broker.url, { timing });
    await upped(depot);
    const begun = performance.now();
    await using _other = aSession(broker.url, { timing });
    await waitFor(() => depot.ups.filter((line) => line === "up").length === 5);
    // Its own pauses: 50, 100, 200 and 400 ms.
    expect(performance.now() - begun).toBeGreaterThan(700);
  });

  test("sessions that share a quota publish everything, also after one of them lost its broker with all places taken", async () => {
    await using frozen = await Mosquitto.start();
    await using broker = await Mosquitto.start();
    const quota = new SharedPlaces(3, 2_000);
    await using lost = aSession(frozen.url, { quota, timing: { ackDeadline: millis(300) } });
    await using kept = aSession(broker.url, { quota });
    await Promise.all([upped(lost), upped(kept)]);
    await using observer = await anObserver(broker.url);
    frozen.freeze();
    const inVain = Array.from({ length: 10 }, () => lost.session.publish("t/lost", "1", live));
    const sent = Array.from({ length: 100 }, (_, index) =>
      kept.session.publish(`t/${index}`, "1", { retain: index % 2 === 0 }),
    );
    expect((await Promise.all(sent)).every(({ ok }) => ok)).toBe(true);
    expect((await Promise.all(inVain)).some(({ ok }) => ok)).toBe(false);
    await waitFor(() => observer.seen.filter((line) => line.startsWith("t/")).length === 100);
    frozen.thaw();
  });

  test("F81: a frozen broker is detected by the missing PUBACK, and reconnected when it thaws", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    broker.freeze();
    expect(await depot.session.publish("setpointd/x", "1", live)).toEqual({
      ok: false,
      retry: true,
      reason: "no PUBACK within 0.4 s (topic setpointd/x)",
    });
    expect(depot.session.connected).toBe(false);
    broker.thaw();
    await upped(depot);
    expect(depot.ups).toEqual(["up", "down: no PUBACK within 0.4 s (topic setpointd/x)", "up"]);
    expect(await depot.session.publish("setpointd/x", "2", live)).toEqual({ ok: true });
  });

  test("F81: a frozen broker is detected without any publish, by the keepalive", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url, { timing: { keepalive: millis(1000) } });
    await upped(depot);
    broker.freeze();
    await waitFor(() => depot.ups.length === 2, { timeoutMs: 3000 });
    expect(depot.ups[1]).toContain("Keepalive timeout");
  });

  test("F85: after a restart of a broker without memory it subscribes again and reports that it is up", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    await broker.kill();
    await waitFor(() => depot.ups.length === 2);
    await broker.start();
    await waitFor(() => depot.ups.length === 3);
    await using other = await anObserver(broker.url);
    await waitFor(() => other.seen.includes(`${PRESENCE} true`));
    await other.client.publishAsync("setpointd/depot/chargers/bay-01/telemetry", "{}", { qos: 1 });
    await waitFor(() => depot.heard.length === 1);
  });

  test("F80: a publish from before or during an outage never arrives after it (finding 3)", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    const hurried = Array.from({ length: 30 }, (_, n) =>
      depot.session.publish("setpointd/old", String(n), live),
    );
    await broker.kill();
    await Promise.all(hurried);
    await waitFor(() => !depot.session.connected);
    const late = await depot.session.publish("setpointd/old", "late", {
      retain: false,
      expirySeconds: () => 2,
    });
    expect(late).toMatchObject({ ok: false, retry: true });
    await broker.start();
    await using other = await anObserver(broker.url);
    await upped(depot);
    await depot.session.publish("setpointd/new", "1", live);
    await waitFor(() => other.seen.includes("setpointd/new 1"));
    expect(other.seen.filter((line) => line.startsWith("setpointd/old"))).toEqual([]);
  });

  test("F82: a burst far larger than the window is published whole, in order", async () => {
    await using broker = await Mosquitto.start();
    await using other = await anObserver(broker.url);
    await using depot = aSession(broker.url, { timing: { ackDeadline: millis(5000) } });
    await upped(depot);
    const numbers = Array.from({ length: 500 }, (_, n) => n);
    const sent = await Promise.all(numbers.map((n) => depot.session.publish("setpointd/b", String(n), live)));
    expect(sent.every(({ ok }) => ok)).toBe(true);
    await waitFor(() => other.seen.length === 501);
    expect(other.seen.slice(1)).toEqual(numbers.map((n) => `setpointd/b ${n}`));
  });

  test("a standstill of this process, longer than the deadline, is not blamed on the broker", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    broker.freeze();
    const sent = depot.session.publish("setpointd/x", "1", live);
    await new Promise(setImmediate);
    setImmediate(() => {
      broker.thaw();
      // The acknowledgement arrives meanwhile. The deadline is due before it is read.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
    });
    expect(await sent).toEqual({ ok: true });
    expect(depot.ups).toEqual(["up"]);
  });

  test("a message that expires while it waits for its slot is not sent", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url, { window: 1 });
    await upped(depot);
    let left = 5;
    const first = depot.session.publish("setpointd/x", "1", live);
    const second = depot.session.publish("setpointd/x", "2", { retain: false, expirySeconds: () => left });
    left = 0;
    expect(await first).toEqual({ ok: true });
    expect(await second).toMatchObject({ ok: false, retry: false });
  });

  test("F93: the broker gets the expiry of a message", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    await depot.session.publish("setpointd/x/short", "1", { retain: true, expirySeconds: () => 1 });
    await depot.session.publish("setpointd/x/long", "1", { retain: true, expirySeconds: () => 100 });
    await waitFor(
      async () => {
        await using other = await anObserver(broker.url);
        await waitFor(() => other.seen.includes("setpointd/x/long 1"));
        return !other.seen.includes("setpointd/x/short 1");
      },
      { everyMs: 200 },
    );
  });

  test("F86: a topic that the broker denies fails alone, without retries", async () => {
    const acl = ["user depot", "topic readwrite #", "topic deny setpointd/depot/chargers/bay-02/set"];
    await using broker = await Mosquitto.start({ users: { depot: "one" }, acl });
    await using depot = aSession(broker.url, { username: "depot", password: () => "one" });
    await upped(depot);
    const [denied, fine] = await Promise.all([
      depot.session.publish("setpointd/depot/chargers/bay-02/set", "1", live),
      depot.session.publish("setpointd/depot/chargers/bay-01/set", "1", live),
    ]);
    expect(denied).toMatchObject({ ok: false, retry: false });
    expect(denied.ok || denied.reason).toContain("Not authorized");
    expect(fine).toEqual({ ok: true });
    expect(depot.ups).toEqual(["up"]);
  });

  test("a message that is too large for the broker fails alone, and the connection stays", async () => {
    await using broker = await Mosquitto.start({ extra: ["max_packet_size 300"] });
    await using depot = aSession(broker.url);
    await upped(depot);
    const [large, small] = await Promise.all([
      depot.session.publish("setpointd/depot/prices/NO1", "1".repeat(260), live),
      depot.session.publish("setpointd/depot/chargers/bay-01/set", "1", live),
    ]);
    expect(large).toEqual({
      ok: false,
      retry: false,
      reason:
        "too large: 303 bytes, and the broker takes packets of at most 300 (topic setpointd/depot/prices/NO1)",
    });
    expect(small).toEqual({ ok: true });
    const fits = "1".repeat(300 - 17 - "setpointd/depot/prices/NO1".length);
    expect(await depot.session.publish("setpointd/depot/prices/NO1", fits, live)).toEqual({ ok: true });
    expect(depot.ups).toEqual(["up"]);
  });

  test("more subscriptions than one packet of the broker holds are made in several", async () => {
    await using broker = await Mosquitto.start({ extra: ["max_packet_size 300"] });
    const filters = Array.from({ length: 40 }, (_, bay) => `go-eCharger/serial-${bay}/nrg`);
    await using depot = aSession(broker.url, { filters });
    await upped(depot);
    await using charger = await anObserver(broker.url);
    for (const filter of filters) await charger.client.publishAsync(filter, "[]", { qos: 1 });
    await waitFor(() => depot.heard.length === filters.length);
    expect(depot.heard).toEqual(filters.map((filter) => `${filter} []`));
    expect(depot.ups).toEqual(["up"]);
  });

  test("F87: a publish without subscribers is ok, and logged", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    expect(await depot.session.publish("setpointd/nobody", "1", live)).toEqual({ ok: true });
    expect(depot.lines.find(({ topic }) => topic === "setpointd/nobody")?.msg).toContain(
      "without subscribers",
    );
  });

  test("F83: a rotated password is used without a restart, and no password is ever logged", async () => {
    await using broker = await Mosquitto.start({ users: { depot: "first-word" } });
    let word = "wrong-word";
    await using depot = aSession(broker.url, { username: "depot", password: () => word });
    await waitFor(() => depot.lines.some(({ reason }) => reason?.includes("Not authorized")));
    word = "first-word";
    await upped(depot);
    await broker.changePasswords({ depot: "second-word" });
    await broker.kill();
    await broker.start();
    await waitFor(() => depot.ups.length === 2);
    word = "second-word";
    await upped(depot);
    expect(depot.logText()).not.toMatch(/(first|second|wrong)-word/);
  });

  test("F67: an invalid topic never reaches the broker, and the connection stays up (finding 4)", async () => {
    await using broker = await Mosquitto.start();
    await using depot = aSession(broker.url);
    await upped(depot);
    for (const topic of ["a/+", "a/#", "a/\0", "", "$SYS/a", "x".repeat(70_000)]) {
      expect(await depot.session.publish(topic, "1", live)).toMatchObject({ ok: false, retry: false });
    }
    expect(await depot.session.publish("setpointd/x", "1", live)).toEqual({ ok: true });
    expect(depot.ups).toEqual(["up"]);
  });

  test("a stop settles every pending publish within its limit, even at a frozen broker", async () => {
    await using broker = await Mosquitto.start();
    const depot = aSession(broker.url, {
      window: 2,
      timing: { ackDeadline: millis(5000), stopWithin: millis(300) },
    });
    await upped(depot);
    broker.freeze();
    const pending = Array.from({ length: 5 }, () => depot.session.publish("setpointd/x", "1", live));
    const begun = performance.now();
    await depot[Symbol.asyncDispose]();
    expect(performance.now() - begun).toBeLessThan(4000);
    for (const sent of await Promise.all(pending)) {
      expect(sent).toEqual({ ok: false, retry: true, reason: "stopping" });
    }
    expect(depot.ups).toEqual(["up"]);
    await depot[Symbol.asyncDispose]();
  });
});

test("a peer that accepts the connection and never answers is dropped after the timeout", async () => {
  const server = createServer(() => undefined);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  {
    await using depot = aSession(`mqtt://127.0.0.1:${port}`);
    await waitFor(() => depot.lines.some(({ reason }) => reason === "connack timeout"));
    expect(depot.ups).toEqual([]);
  }
  server.close();
});

test("a broker that waits for the rest of an MQTT 5 CONNECT is connected with MQTT 3.1.1", async () => {
  const aedes = await Aedes.createBroker();
  const server = createServer((socket) =>
    socket.once("data", (first: Buffer) => {
      // The level of the protocol.
      if (first[8] !== 4) return;
      socket.pause();
      socket.unshift(first);
      aedes.handle(socket);
    }),
  );
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  {
    await using depot = aSession(`mqtt://127.0.0.1:${port}`);
    await upped(depot);
    expect(depot.session.terms.version).toBe(4);
    expect(await depot.session.publish("setpointd/x", "1", live)).toEqual({ ok: true });
  }
  aedes.close();
  server.close();
});

test("F84: when another client uses its id, it steps down, logs an error and reconnects later", async () => {
  await using broker = await aScriptedBroker();
  await using depot = aSession(broker.url, { timing: { takenOverPause: millis(300) } });
  await upped(depot);
  broker.disconnect(0x8e);
  const begun = performance.now();
  await waitFor(() => depot.ups.length === 2);
  expect(depot.ups[1]).toContain("0x8e");
  expect(depot.lines.filter(({ level }) => level >= 40)).toMatchObject([{ level: 50 }]);
  await waitFor(() => depot.session.trouble.includes("another client connected with our client id (0x8e)"));
  expect(depot.session.trouble).toContain("perhaps a second gateway of this site");
  await upped(depot);
  expect(performance.now() - begun).toBeGreaterThan(290);
  expect(broker.connects()).toBe(2);
});

test.each([
  ["ours", 4, 100],
  ["the broker's", 100, 5],
])(
  "F82: no more than the window is in flight, and %s counts if it is smaller",
  async (_, window, receiveMaximum) => {
    await using broker = await aScriptedBroker({ receiveMaximum, ignores: (topic) => topic === "burst" });
    await using depot = aSession(broker.url, { window });
    await upped(depot);
    const sent = await Promise.all(
      Array.from({ length: 12 }, () => depot.session.publish("burst", "1", live)),
    );
    expect(sent).toEqual(
      Array.from({ length: 12 }, () => ({
        ok: false,
        retry: true,
        reason: "no PUBACK within 0.4 s (topic burst)",
      })),
    );
    expect(broker.published.filter((topic) => topic === "burst")).toHaveLength(
      Math.min(window, receiveMaximum),
    );
  },
);

test("a publish that the broker acknowledged before it hung up counts as sent", async () => {
  await using broker = await aScriptedBroker({ leavesAfter: (topic) => topic.endsWith("/last") });
  await using tested = aSession(broker.url);
  await waitFor(() => tested.session.connected);
  const sent = ["a", "b", "last"].map((name) =>
    tested.session.publish(`setpointd/depot/${name}`, "x", { retain: false }),
  );
  expect(await Promise.all(sent)).toEqual([{ ok: true }, { ok: true }, { ok: true }]);
  await waitFor(() => tested.ups.length > 1);
  expect(tested.ups[1]).toContain("down");
});

test("a topic at which the broker hangs up is found among many and set aside, and all others get through", async () => {
  const denied = "setpointd/depot/chargers/bay-05/set";
  await using broker = await aScriptedBroker({ hangsUpAt: (topic) => topic === denied });
  const topics = Array.from({ length: 9 }, (_, index) => `setpointd/depot/chargers/bay-0${index + 1}/set`);
  let refusal = "";
  const sendAll = (): void => {
    for (const topic of topics)
      void tested.session.publish(topic, "1", { retain: false }).then((sent) => {
        if (!sent.ok && !sent.retry) refusal = `${topic}: ${sent.reason}`;
      });
  };
  // As the daemon does: whatever holds is sent after each connection.
  await using tested = aSession(broker.url, { onUp: sendAll });
  await waitFor(() => refusal !== "");
  expect(refusal).toBe(
    `${denied}: set aside for 1 min: the broker ends the connection at publishes on this topic; does its access list allow it? (topic ${denied})`,
  );
  expect(tested.lines.filter(({ msg }) => msg === "broker restricts us").length).toBe(1);
  const ends = broker.connects();
  expect(
    await Promise.all(topics.map((topic) => tested.session.publish(topic, "2", { retain: false }))),
  ).toEqual(
    topics.map((topic) => (topic === denied ? expect.objectContaining({ ok: false }) : { ok: true })),
  );
  expect([tested.session.connected, broker.connects()]).toEqual([true, ends]);
});

test("a topic whose publishes the broker drops in silence is set aside, and the connection stays", async () => {
  const denied = "setpointd/depot/chargers/bay-05/set";
  await using broker = await aScriptedBroker({ ignores: (topic) => topic === denied });
  await using tested = aSession(broker.url);
  await upped(tested);
  const fault = `the broker does not answer publishes on this topic; does its access list allow it? (topic ${denied})`;
  const both = () =>
    Promise.all([
      tested.session.publish(denied, "1", { retain: false }),
      tested.session.publish("setpointd/depot/chargers/bay-06/set", "1", { retain: false }),
    ]);
  expect(await both()).toEqual([{ ok: false, retry: true, reason: fault }, { ok: true }]);
  await both();
  const third = { ok: false, retry: false, reason: `set aside for 1 min: ${fault}` };
  expect(await both()).toEqual([third, { ok: true }]);
  expect([tested.ups, broker.connects()]).toEqual([["up"], 1]);
});

test("a broker that hangs up at long subscriptions gets shorter ones", async () => {
  await using broker = await aScriptedBroker({ mostFilters: 8 });
  const filters = Array.from({ length: 20 }, (_, index) => `c${index}`);
  await using tested = aSession(broker.url, { filters });
  await upped(tested);
  expect(tested.session.terms.refusedFilters).toEqual([]);
});

test("F84: a connection that is cut during the subscription is a lost connection, and does not crash the daemon", async () => {
  await using broker = await aScriptedBroker({ cutsSubscribers: 2 });
  await using tested = aSession(broker.url);
  await waitFor(() => tested.session.connected);
  expect(broker.connects()).toBe(3);
  expect(tested.lines.filter(({ msg }) => msg === "broker restricts us")).toEqual([]);
});

test("a connection without an acknowledged presence message is not up", async () => {
  await using broker = await aScriptedBroker({ ignores: () => true });
  await using depot = aSession(broker.url);
  await waitFor(() => broker.connects() >= 2);
  expect(depot.ups).toEqual([]);
  expect(depot.lines.find(({ level }) => level === 40)?.reason).toBe(
    `no PUBACK within 0.4 s (topic ${PRESENCE})`,
  );
});

test("a web server without websockets is reported as such", async () => {
  const server = createWebServer((_, response) => response.writeHead(404).end());
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  {
    await using depot = aSession(`ws://127.0.0.1:${port}/mqtt`);
    await waitFor(() => depot.lines.some(({ reason }) => reason?.includes("404")));
  }
  server.close();
});

test("an unusable url or certificate is reported, and the session stops in order", async () => {
  await using wrong = aSession("http://127.0.0.1:1");
  await waitFor(() => wrong.lines.some(({ reason }) => reason?.includes("not mqtt")));
  await using pem = aSession("mqtts://127.0.0.1:1", { tls: () => ({ cert: "no", key: "pem" }) });
  await waitFor(() => pem.lines.some(({ level }) => level === 40));
});
