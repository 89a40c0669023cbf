import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import { connect } from "node:tls";
import { request } from "undici";
import { expect, test } from "vitest";

import { Authority } from "../support/certificates.ts";
import { aBurst, waitingAtMost } from "../support/aBurst.ts";
import { anEmbeddedBroker, DAEMON } from "../support/anEmbeddedBroker.ts";
import type { Payload } from "../../src/ocpp/wire/frame.ts";
import { anOrder, HEX_KEY, TestBridge, TestStation } from "../support/anOcppBridge.ts";
import { Floor } from "../support/aFloor.ts";
import { waitFor } from "../support/waitFor.ts";

const METER = (value: string, timestamp: string, transactionId?: number) => ({
  connectorId: 1,
  ...(transactionId === undefined ? {} : { transactionId }),
  meterValue: [{ timestamp, sampledValue: [{ value, measurand: "Power.Active.Import", unit: "W" }] }],
});
const iso = (offsetMs = 0): string => new Date(Date.now() + offsetMs).toISOString();

test("the bridge starts although the machine lacks the address for chargers, and stops", async () => {
  await using bridge = await TestBridge.start({ ocpp: { listen: "192.0.2.1:9000" } });
  expect(bridge.view().state).toBe("absent");
  expect((await bridge.get("/healthz")).status).toBe(200);
});

test("a station is asked what it can do, is set up, and then takes orders as a native charger", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => floor.on("/bay-01/online").some(({ text }) => text === "true"));
  await waitFor(() => station.asked("TriggerMessage").length > 0);
  expect(station.asked("ChangeConfiguration").map(({ key }) => key)).toEqual([
    "MeterValuesSampledData",
    "MeterValueSampleInterval",
  ]);
  await station.call("StatusNotification", { connectorId: 1, status: "Charging", errorCode: "NoError" });
  await station.call("MeterValues", METER("11040", iso()));
  await waitFor(() => floor.on("/bay-01/telemetry").some(({ text }) => text.includes('"powerW":11040')));
  await floor.publish(
    "setpointd/depot/chargers/bay-01/set",
    JSON.stringify({
      v: 1,
      id: "7-1",
      epoch: 7,
      seq: 1,
      kind: "power",
      value: 7400,
      unit: "W",
      until: iso(60_000),
      lease: 60,
      vehicle: null,
      event: "EV-1",
    }),
  );
  await waitFor(() => floor.on("/bay-01/ack").length === 1);
  expect(JSON.parse(floor.on("/bay-01/ack")[0]?.text ?? "")).toEqual({
    id: "7-1",
    accepted: true,
    value: 7400,
    reason: null,
  });
  await floor.publish("setpointd/depot/chargers/bay-01/set", "{}");
  await waitFor(() => bridge.view().connectors[0]?.counts.malformedSets === 1);
  await station[Symbol.asyncDispose]();
  await waitFor(() => floor.on("/bay-01/online").at(-1)?.text === "false");
  expect(bridge.view()).toMatchObject({ state: "absent", reason: "closed with code 1006" });
});

test("a wrong password, an unknown identity, another path and another protocol are refused, counted and shown", async () => {
  await using bridge = await TestBridge.start();
  expect(await TestStation.refusal(bridge.url(), { password: "wrong" })).toBe(401);
  expect(await TestStation.refusal(bridge.url(), { password: null })).toBe(401);
  expect(await TestStation.refusal(bridge.url(), { identity: "CP-2" })).toBe(401);
  expect(await TestStation.refusal(bridge.url("CP-9"))).toBe(404);
  expect(await TestStation.refusal(`ws://127.0.0.1:${bridge.bridge.port}/other/CP-1`)).toBe(404);
  expect(await TestStation.refusal(bridge.url(), { protocols: ["ocpp1.5"] })).toBe(400);
  const { refused } = JSON.parse((await bridge.get("/api/v1/stations")).text);
  expect(refused.count).toBe(6);
  expect(refused.latest).toContainEqual({
    identity: "CP-9",
    address: "127.0.0.1",
    reason: "this identity is not in the configuration",
    count: 1,
  });
  expect(bridge.view().problems).toEqual([
    "4 logins were refused: compare its password and its OCPP version",
  ]);
  expect((await fetch(`http://127.0.0.1:${bridge.bridge.port}/`)).status).toBe(426);
});

test("a URL with a slash too many, an identity with colons, and a key that is sent as its bytes log in", async () => {
  await using bridge = await TestBridge.start({
    stations: [
      {
        identity: "02:AA:BB:00:00:01",
        password: { file: "password" },
        connectors: [{ id: 1, charger: "bay-01" }],
      },
      { identity: "CP-2", password: { file: "key" }, connectors: [{ id: 1, charger: "bay-02" }] },
    ],
  });
  await using _colons = await TestStation.boot(bridge.url("02:AA:BB:00:00:01"));
  for (const path of ["//CP-2", "/CP-2/"])
    expect(
      await TestStation.refusal(`ws://127.0.0.1:${bridge.bridge.port}/ocpp${path}`, {
        identity: "CP-2",
        password: HEX_KEY,
      }),
    ).toBe(101);
  expect(await TestStation.refusal(bridge.url("CP-2"), { password: Buffer.from(HEX_KEY, "hex") })).toBe(101);
  expect(
    await TestStation.refusal(bridge.url("CP-2"), { password: Buffer.from(HEX_KEY.slice(2), "hex") }),
  ).toBe(401);
  expect(await TestStation.refusal(bridge.url("CP-2/CP-2"), { identity: "CP-2", password: HEX_KEY })).toBe(
    404,
  );
});

test.skipIf(waitingAtMost() < 1_000)("stations that connect all at once are accepted", async () => {
  await using bridge = await TestBridge.start();
  expect(await aBurst(bridge.bridge.port, 900)).toBe(900);
});

test("a newer connection of an identity wins, and both are on record", async () => {
  await using bridge = await TestBridge.start();
  await using old = await TestStation.boot(bridge.url());
  await using young = await TestStation.boot(bridge.url());
  await waitFor(() => old.closed !== null);
  expect(old.closed).toEqual({ code: 1000, reason: "replaced by a newer connection of the same identity" });
  expect(await young.call("Heartbeat", {})).toHaveLength(3);
  expect(bridge.view().counts).toMatchObject({ connections: 2, replaced: 1 });
  // The older one may go on to send until it has read its end.
  young.socket.pause();
  await using newest = await TestStation.boot(bridge.url());
  young.send(JSON.stringify([2, "late", "StatusNotification", { connectorId: 1, status: "Charging" }]));
  await waitFor(() => young.socket.bufferedAmount === 0);
  for (let n = 0; n < 3; n += 1) await newest.call("Heartbeat", {});
  expect(bridge.view().connectors[0]?.state).toBeNull();
  young.socket.resume();
});

test("a message of 10 MB ends its connection, and no other", async () => {
  await using bridge = await TestBridge.start();
  await using big = await TestStation.boot(bridge.url());
  await using calm = await TestStation.boot(bridge.url("CP-2"));
  big.send(JSON.stringify([2, "x", "DataTransfer", { data: "x".repeat(10_000_000) }]));
  await waitFor(() => big.closed !== null);
  expect(big.closed?.code).toBe(1009);
  await waitFor(() => bridge.view().counts.tooLarge === 1);
  expect(bridge.view().problems).toEqual(["1 of its messages were over 256 KiB and ended its connection"]);
  expect(await calm.call("Heartbeat", {})).toHaveLength(3);
  await waitFor(() => bridge.view().state === "absent");
  expect(bridge.view().reason).toContain("Max payload size exceeded");
});

test("a flood is slowed down, and costs no other station its answers", async () => {
  await using bridge = await TestBridge.start();
  await using flooding = await TestStation.boot(bridge.url());
  await using calm = await TestStation.boot(bridge.url("CP-2"));
  for (let n = 0; n < 5_000; n += 1) flooding.send(JSON.stringify([2, `f-${n}`, "Heartbeat", {}]));
  const began = performance.now();
  await calm.call("Heartbeat", {});
  expect(performance.now() - began).toBeLessThan(1_000);
  await waitFor(() => bridge.view().counts.flooded > 0);
  expect(bridge.view().counts.messages).toBeLessThan(5_000);
});

test("a charger that floods takes its setpoint at once: its answer waits behind none of its calls", async () => {
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({ ocpp: { callTimeout: "5s" } }, address);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => floor.on("/bay-01/online").at(-1)?.text === "true");
  const long = { info: "x".repeat(500) };
  for (let n = 0; n < 4_000; n += 1) station.send(JSON.stringify([2, `f-${n}`, "Heartbeat", long]));
  await waitFor(() => bridge.view().counts.flooded > 0);
  await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder());
  const ack = await waitFor(() => floor.on("/bay-01/ack").at(-1)?.text);
  expect(JSON.parse(ack)).toMatchObject({ accepted: true, value: 16 });
});

test("frames that cannot be read are counted, and refused by name where they have an id", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  station.send("{");
  station.send('[2,"m-1","Heartbeat",[]]');
  station.send('[3,"never-asked",{}]');
  await waitFor(() => station.results.some(([, id]) => id === "m-1"));
  expect(station.results.at(-1)).toEqual([4, "m-1", "FormationViolation", "the payload is no object", {}]);
  await waitFor(() => bridge.view().counts.unexpected === 1);
  expect(bridge.view().counts.malformed).toBe(2);
  expect(bridge.view().problems).toEqual(["2 of its messages could not be read"]);
});

test("a station that does not answer is asked on, and each missing answer is counted", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url(), {
    answers: { GetConfiguration: null, ChangeConfiguration: null },
  });
  await waitFor(() => (bridge.view().counts.unanswered ?? 0) >= 3);
  expect(bridge.view()).toMatchObject({
    state: "ready",
    smartCharging: null,
    problems: [expect.stringMatching(/^it left \d requests unanswered$/)],
  });
  expect(station.closed).toBeNull();
});

test.each(["ocpp1.6", "ocpp2.0.1"])(
  "a station that leaves a question open gets its first setpoint all the same, and again with its late answer: %s",
  async (protocol) => {
    const question = protocol === "ocpp1.6" ? "GetConfiguration" : "GetVariables";
    await using broker = await anEmbeddedBroker();
    const address = `mqtt://127.0.0.1:${broker.port}`;
    await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
    await using bridge = await TestBridge.start({ ocpp: { callTimeout: "1m" } }, address);
    await using station = new TestStation(bridge.url(), {
      protocols: [protocol],
      answers: { [question]: null },
    });
    await once(station.socket, "open");
    await station.call("Heartbeat", {});
    await waitFor(() => floor.on("/bay-01/online").some(({ text }) => text === "true"));
    await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder());
    await waitFor(() => floor.on("/bay-01/ack").length === 1);
    expect(floor.on("/bay-01/ack")[0]?.text).toContain('"accepted":true');
    expect(bridge.view()).toMatchObject({ state: "ready", counts: { unanswered: 0 } });
    station.answerLate(
      question,
      protocol === "ocpp1.6"
        ? { configurationKey: [{ key: "ChargeProfileMaxStackLevel", readonly: true, value: "9" }] }
        : {
            getVariableResult: [
              {
                attributeStatus: "Accepted",
                attributeValue: "9",
                component: { name: "SmartChargingCtrlr" },
                variable: { name: "ProfileStackLevel" },
              },
            ],
          },
    );
    await waitFor(() => station.asked("SetChargingProfile").length === 2);
    const levels = station.asked("SetChargingProfile").map((payload) => {
      const profile = payload["csChargingProfiles"] ?? payload["chargingProfile"];
      return (profile as Payload)["stackLevel"];
    });
    expect(levels).toEqual([1, 9]);
    await waitFor(() => station.asked("TriggerMessage").length > 0);
  },
);

test("a clock of 1970 is put right once, and its readings count as of now", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => station.asked("TriggerMessage").length === 2);
  await station.call("MeterValues", METER("5", "1970-01-01T00:00:00Z"));
  await station.call("MeterValues", METER("6", "1970-01-01T00:00:01Z"));
  await waitFor(() => station.asked("TriggerMessage").length === 3);
  expect(station.asked("TriggerMessage").at(-1)).toEqual({ requestedMessage: "Heartbeat" });
  expect(bridge.view().counts).toMatchObject({ clockWrong: 2, outOfOrder: 0 });
  // A charger without a battery has lost the time at its next start.
  await using again = await TestStation.boot(bridge.url());
  await waitFor(() => again.asked("TriggerMessage").length === 2);
  await again.call("MeterValues", METER("7", "1970-01-01T00:00:00Z"));
  await waitFor(() => again.asked("TriggerMessage").length === 3);
});

test("a clock that is minutes late takes no reading from the telemetry", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().connectors[0]?.broker === true);
  const last = () =>
    JSON.parse(floor.on("/bay-01/telemetry").at(-1)?.text ?? "{}") as { readonly powerW?: unknown };
  // A heartbeat repeats the readings of now.
  await waitFor(async () => {
    const before = floor.on("/bay-01/telemetry").length;
    await station.call("MeterValues", METER("11040", iso(-180_000)));
    await station.call("Heartbeat", {});
    await waitFor(() => floor.on("/bay-01/telemetry").length >= before + 2);
    return last().powerW === 11_040;
  });
});

test("a heartbeat is a sign of life, and an order that the broker retained is none", async () => {
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder(), true);
  await using bridge = await TestBridge.start({}, address);
  await using station = await TestStation.boot(bridge.url());
  await station.call("StatusNotification", { connectorId: 1, status: "Charging", errorCode: "NoError" });
  await waitFor(() => floor.on("/bay-01/telemetry").length > 0);
  const before = floor.on("/bay-01/telemetry").length;
  await station.call("Heartbeat", {});
  await waitFor(() => floor.on("/bay-01/telemetry").length > before);
  expect(floor.on("/bay-01/ack")).toEqual([]);
  expect(station.asked("SetChargingProfile")).toEqual([]);
});

test("a station whose next heartbeat is hours away shows its life by the answers to our pings", async () => {
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  let quiet = 0;
  await using bridge = await TestBridge.start({}, address, () => performance.now() + quiet);
  await using station = await TestStation.boot(bridge.url());
  await station.call("StatusNotification", { connectorId: 1, status: "Available", errorCode: "NoError" });
  await waitFor(() => floor.on("/bay-01/telemetry").length > 0);
  const last = () => JSON.parse(floor.on("/bay-01/telemetry").at(-1)?.text ?? "") as Payload;
  const since = Date.now();
  quiet = 61_000;
  station.socket.pong();
  await waitFor(() => Date.parse(String(last()["at"])) >= since);
  expect(last()["state"]).toBe("unplugged");
});

test("a charger that reports its register only is measured by it", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => floor.on("/bay-01/online").some(({ text }) => text === "true"));
  await station.call("StatusNotification", { connectorId: 1, status: "Charging", errorCode: "NoError" });
  const register = async (kwh: string, secondsAgo: number): Promise<void> => {
    const sampledValue = [{ value: kwh, measurand: "Energy.Active.Import.Register", unit: "kWh" }];
    const meterValue = [{ timestamp: iso(-secondsAgo * 1000), sampledValue }];
    await station.call("MeterValues", { connectorId: 1, meterValue });
  };
  await register("12.003", 50);
  await register("12.103", 0);
  await waitFor(() => floor.on("/bay-01/telemetry").some(({ text }) => /"powerW":7[12]\d\d\b/.test(text)));
  // Power of before a level is none of it.
  await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder());
  await waitFor(() => floor.on("/bay-01/ack").length === 1);
  await station.call("Heartbeat", {});
  await waitFor(() => floor.on("/bay-01/telemetry").at(-1)?.text.includes('"powerW":null') === true);
});

test("meter values out of order are counted and not used", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  await station.call("MeterValues", METER("6", iso(-10_000)));
  await station.call("MeterValues", METER("5", iso(-20_000)));
  expect(bridge.view().counts.outOfOrder).toBe(1);
  expect(bridge.bridge.stations.get("CP-1")?.outlets[0]?.state.readings).toEqual({ powerW: 6 });
});

test("a session that a charger reports after a cut has the time at which it was, and leaves a free bay free", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().connectors[0]?.broker === true);
  const free = { connectorId: 1, status: "Available", errorCode: "NoError", timestamp: iso() };
  await station.call("StatusNotification", free);
  const [begin, end] = [iso(-3_600_000), iso(-1_800_000)];
  const start = { connectorId: 1, idTag: "04A2B3C4", meterStart: 0, timestamp: begin };
  const [, , { transactionId }] = (await station.call("StartTransaction", start)) as [3, string, Payload];
  await station.call("StopTransaction", { transactionId, meterStop: 9_000, timestamp: end });
  const sent = () => floor.on("/bay-01/telemetry").map(({ text }) => JSON.parse(text));
  await waitFor(() => sent().at(-1)?.energyWh === 9_000);
  expect(sent().filter(({ identity }) => identity !== null)).toMatchObject([{ at: begin }]);
  expect(sent().at(-1)).toMatchObject({ at: end, state: "unplugged", identity: null });
});

test("a station that names a transaction of another system is followed in it", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  await station.call("MeterValues", METER("6", iso(), 77));
  expect(bridge.view().connectors[0]?.transaction).toBe("77");
  await station.call("StopTransaction", { transactionId: 77, meterStop: 9, timestamp: iso() });
  expect(bridge.view().connectors[0]?.transaction).toBeNull();
});

test("a charger that rejects a list of measurands for one that it lacks gets those that it has", async () => {
  await using bridge = await TestBridge.start();
  const KEY = "MeterValuesSampledData";
  const settings = new Map([[KEY, "Energy.Active.Import.Register"]]);
  const answers = {
    GetConfiguration: () => ({ configurationKey: [...settings].map(([key, value]) => ({ key, value })) }),
    ChangeConfiguration: ({ key, value }: Payload) => {
      if (String(value).includes("Power.Active.Import")) return { status: "Rejected" };
      settings.set(String(key), String(value));
      return { status: "Accepted" };
    },
  };
  for (const written of [2, 1]) {
    await using station = await TestStation.boot(bridge.url(), { answers });
    await waitFor(() => station.asked("TriggerMessage").length > 0);
    expect(settings.get(KEY)).toBe("Energy.Active.Import.Register,Current.Import");
    const values = station.asked("ChangeConfiguration").filter(({ key }) => key === KEY);
    expect(values.filter(({ value }) => !String(value).includes("Power"))).toHaveLength(written - 1);
  }
});

test("a station without Smart Charging is shown with its remedy, and one that restarts is asked again", async () => {
  await using bridge = await TestBridge.start();
  const configurationKey = [{ key: "SupportedFeatureProfiles", readonly: true, value: "Core" }];
  await using station = await TestStation.boot(bridge.url(), {
    answers: { GetConfiguration: { configurationKey } },
  });
  await waitFor(() => bridge.view().state === "ready");
  expect(bridge.view().problems[0]).toContain("it has no Smart Charging: every setpoint is refused");
  await station.call("BootNotification", { chargePointVendor: "Test", chargePointModel: "One" });
  await waitFor(() => station.asked("GetConfiguration").length === 2);
  expect(bridge.view()).toMatchObject({ model: "Test One", counts: { boots: 2, bootsAfterProfile: 0 } });
});

test("security profile 3: the certificate of the station decides", async () => {
  using authority = new Authority();
  using others = new Authority();
  const own = authority.issue("gateway");
  await using bridge = await TestBridge.start({
    ocpp: { tls: { ...own, clientCa: authority.ca } },
    stations: [{ identity: "CP-1", certificate: "CP-1", connectors: [{ id: 1, charger: "bay-01" }] }],
  });
  const url = bridge.url().replace("ws:", "wss:");
  const pems = ({ cert, key }: { cert: string; key: string }) => ({
    ca: authority.caText,
    cert: readFileSync(cert),
    key: readFileSync(key),
    password: null,
  });
  expect(await TestStation.refusal(url, { ca: authority.caText, password: null })).toBe(401);
  expect(await TestStation.refusal(url, pems(authority.issue("CP-2")))).toBe(401);
  expect(await TestStation.refusal(url, pems(others.issue("CP-1")))).toBe(401);
  expect(await TestStation.refusal(url, pems(authority.issue("CP-1")))).toBe(101);
});

test("a new certificate is used without a restart, and a broken one is not", async () => {
  using authority = new Authority();
  const own = authority.issue("gateway");
  const next = authority.issue("gateway-2");
  await using bridge = await TestBridge.start({ ocpp: { tls: own } });
  const name = async (): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = connect({ port: bridge.bridge.port, host: "127.0.0.1", ca: authority.caText }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    return promise;
  };
  expect(await name()).toBe("gateway");
  copyFileSync(next.cert, own.cert);
  bridge.bridge.reload();
  expect(await name()).toBe("gateway");
  copyFileSync(next.key, own.key);
  bridge.bridge.reload();
  expect(await name()).toBe("gateway-2");
  await using plain = await TestBridge.start();
  plain.bridge.reload();
});

test("a bridge that finds a session under way leaves the vehicle that the daemon knows", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  await using station = new TestStation(bridge.url());
  await once(station.socket, "open");
  await station.call("StatusNotification", { connectorId: 1, status: "Charging", errorCode: "NoError" });
  await waitFor(() => bridge.view().connectors[0]?.broker === true);
  await station.call("MeterValues", METER("11040", iso(), 77));
  const last = () =>
    JSON.parse(floor.on("/bay-01/telemetry").at(-1)?.text ?? "{}") as { readonly powerW?: unknown };
  await waitFor(() => typeof last().powerW === "number");
  expect(last()).toMatchObject({ state: "charging", powerW: 11040 });
  expect(last()).not.toHaveProperty("identity");
});

test("a station that restarts at each profile is shown after the third time", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  await using station = await TestStation.boot(bridge.url());
  for (let seq = 1; seq <= 3; seq += 1) {
    await waitFor(() => bridge.view().connectors[0]?.broker === true && bridge.view().state === "ready");
    await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder({ id: `7-${seq}`, seq }));
    await waitFor(() => station.asked("SetChargingProfile").length === seq);
    await waitFor(() => floor.on("/bay-01/ack").length === seq);
    await station.call("BootNotification", { chargePointVendor: "Test", chargePointModel: "One" });
  }
  expect(bridge.view()).toMatchObject({
    counts: { boots: 4, bootsAfterProfile: 3 },
    problems: [
      "it restarted 3 times within a minute after a charging profile: ask the vendor for a newer firmware",
    ],
  });
  expect((await bridge.get("/metrics")).text).toContain(
    'setpointd_ocpp_problem{station="CP-1",kind="restarts"} 1',
  );
});

test("a station that accepts a limit and reports a higher one is shown", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({}, `mqtt://127.0.0.1:${broker.port}`);
  const chargingSchedule = {
    chargingRateUnit: "A",
    chargingSchedulePeriod: [{ startPeriod: 0, limit: 32 }],
  };
  await using station = await TestStation.boot(bridge.url(), {
    answers: { GetCompositeSchedule: { status: "Accepted", chargingSchedule } },
  });
  await waitFor(() => bridge.view().connectors[0]?.broker === true);
  await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder());
  await waitFor(() => bridge.view().problems.length === 1);
  expect(bridge.view().problems[0]).toContain("connector 1 accepted 16 A and reports that it applies 32 A");
  expect(station.closed).toBeNull();
});

test("a session on a connector that the configuration lacks is answered, counted and shown", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  await station.call("StatusNotification", { connectorId: 0, status: "Available", errorCode: "NoError" });
  await station.call("StatusNotification", { connectorId: 2, status: "Preparing", errorCode: "NoError" });
  expect((await station.call("StartTransaction", { connectorId: 2, idTag: "04", meterStart: 0 }))[0]).toBe(3);
  expect(bridge.view().problems).toEqual([
    "2 of its messages name a connector that the configuration lacks: add it to connectors",
  ]);
  expect(bridge.view().connectors[0]).toMatchObject({ state: null, transaction: null });
});

test("a station that refuses to send meter values is asked for the status of every outlet", async () => {
  await using bridge = await TestBridge.start(TWO_OUTLETS);
  await using station = await TestStation.boot(bridge.url(), {
    answers: {
      TriggerMessage: ({ requestedMessage }) =>
        requestedMessage === "MeterValues" ? "InternalError" : { status: "Accepted" },
    },
  });
  const triggered = () => station.asked("TriggerMessage").map((asked) => Object.values(asked).join(" "));
  await waitFor(() => triggered().length === 4);
  expect(triggered()).toEqual([
    "StatusNotification 1",
    "StatusNotification 2",
    "MeterValues 1",
    "MeterValues 2",
  ]);
});

test("two outlets of one station are commanded and released apart", async () => {
  await using broker = await anEmbeddedBroker();
  await using floor = await Floor.at(`mqtt://127.0.0.1:${broker.port}`, { protocolVersion: 4, ...DAEMON });
  const connectors = [1, 2].map((id) => ({ id, charger: `bay-0${id}` }));
  await using bridge = await TestBridge.start(
    { stations: [{ identity: "CP-1", password: { file: "password" }, connectors }] },
    `mqtt://127.0.0.1:${broker.port}`,
  );
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().connectors.every((connector) => connector.broker));
  await station.call("StartTransaction", { connectorId: 2, idTag: "04", meterStart: 0 });
  const set = (bay: string, more: object) =>
    floor.publish(`setpointd/depot/chargers/${bay}/set`, anOrder(more));
  await set("bay-01", { kind: "pause", value: null, unit: null });
  await set("bay-02", {});
  await waitFor(() => floor.on("/ack").length === 2);
  const written = station
    .asked("SetChargingProfile")
    .map(({ connectorId, csChargingProfiles: profile }) => [
      connectorId,
      (profile as Payload)["chargingProfileId"],
    ]);
  expect(written.toSorted(([, a], [, b]) => Number(a) - Number(b))).toEqual([
    [1, 7_300_010],
    [2, 7_300_020],
    [2, 7_300_021],
  ]);
  await set("bay-02", { id: "7-2", seq: 2, kind: "release", value: null, unit: null });
  await waitFor(() => floor.on("/bay-02/ack").length === 2);
  expect(station.asked("ClearChargingProfile")).toEqual([{ id: 7_300_020 }, { id: 7_300_021 }]);
  expect(bridge.view().connectors.map(({ limit }) => limit?.level ?? null)).toEqual(["pause", null]);
});

test("the status listens on loopback, with counts for a monitor", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().state === "ready");
  expect(station.closed).toBeNull();
  const { text } = await bridge.get("/metrics");
  expect(text).toContain('setpointd_ocpp_ready{station="CP-1"} 1');
  expect(text).toContain('setpointd_ocpp_boots_after_profile_total{station="CP-2"} 0');
  expect(await bridge.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
  expect((await bridge.get("/other")).status).toBe(404);
  const url = `http://127.0.0.1:${bridge.bridge.statusPort}/healthz`;
  expect((await fetch(url, { method: "POST" })).status).toBe(405);
  const foreign = await request(url, { headers: { host: "attacker.example" } });
  expect(foreign.statusCode).toBe(403);
  await foreign.body.dump();
});

test("a fault of the connector 0 is one of every outlet, and a stop of an unknown session one of the only outlet", async () => {
  const connectors = [1, 2].map((id) => ({ id, charger: `bay-0${id}` }));
  await using bridge = await TestBridge.start({
    stations: [
      { identity: "CP-1", password: { file: "password" }, connectors },
      { identity: "CP-2", password: { file: "password" }, connectors: [{ id: 1, charger: "bay-03" }] },
    ],
  });
  await using station = await TestStation.boot(bridge.url());
  const states = () => bridge.view().connectors.map(({ state, fault }) => [state, fault]);
  const report = (connectorId: number, status: string, errorCode = "NoError") =>
    station.call("StatusNotification", { connectorId, status, errorCode });
  await report(1, "Charging");
  await report(2, "Available");
  await report(0, "Faulted", "GroundFailure");
  expect(states()).toEqual([
    ["error", "GroundFailure"],
    ["error", "GroundFailure"],
  ]);
  await report(0, "Available");
  expect(states()).toEqual([
    ["charging", null],
    ["unplugged", null],
  ]);
  expect(bridge.view().counts.otherConnectors).toBe(0);
  await using alone = await TestStation.boot(bridge.url("CP-2"));
  await alone.call("StatusNotification", { connectorId: 1, status: "Charging", errorCode: "NoError" });
  for (const one of [station, alone])
    await one.call("StopTransaction", { transactionId: 9, meterStop: 5, timestamp: iso() });
  expect(bridge.view("CP-2").connectors[0]?.state).toBe("finished");
  expect(bridge.view().connectors[0]?.state).toBe("charging");
});

const REBOOT = "setpointd/depot/chargers/bay-01/reboot";
const aReboot = (id: string): string => JSON.stringify({ v: 1, id, at: iso() });

test("a reboot of the daemon becomes a Reset, once, and the station's answer becomes the ack", async () => {
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  await floor.publish(REBOOT, aReboot("reboot-6-1"), true);
  await using bridge = await TestBridge.start({}, address);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => floor.on("/bay-01/online").some(({ text }) => text === "true"));
  const answered = async (id: string): Promise<unknown> => {
    const before = floor.on("/bay-01/ack").length;
    await floor.publish(REBOOT, aReboot(id));
    await waitFor(() => floor.on("/bay-01/ack").length > before);
    return JSON.parse(floor.on("/bay-01/ack").at(-1)?.text ?? "");
  };
  expect(await answered("reboot-7-1")).toEqual({
    id: "reboot-7-1",
    accepted: true,
    value: null,
    reason: null,
  });
  expect(station.asked("Reset")).toEqual([{ type: "Soft" }]);
  // The broker may deliver a message twice, and had kept an old one.
  await floor.publish(REBOOT, aReboot("reboot-7-1"));
  await floor.publish(REBOOT, '{"v":2}');
  await waitFor(() => bridge.view().connectors[0]?.counts.malformedSets === 1);
  expect(station.asked("Reset")).toHaveLength(1);
  station.answers = { Reset: { status: "Rejected" } };
  expect(await answered("reboot-7-2")).toMatchObject({
    accepted: false,
    reason: "the charger answered Reset with Rejected",
  });
  station.answers = { Reset: null };
  expect(await answered("reboot-7-3")).toMatchObject({
    accepted: false,
    reason: "the charger did not answer Reset within 1 s",
  });
});

test("a station of another central system is not reset by us", async () => {
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  await using bridge = await TestBridge.start({ upstream: { url: "ws://127.0.0.1:9/csms" } }, address);
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => floor.on("/bay-01/online").some(({ text }) => text === "true"));
  await floor.publish(REBOOT, aReboot("reboot-7-1"));
  await waitFor(() => floor.on("/bay-01/ack").length === 1);
  expect(JSON.parse(floor.on("/bay-01/ack")[0]?.text ?? "")).toMatchObject({
    accepted: false,
    reason: expect.stringContaining("its central system (upstream) owns it"),
  });
  expect(station.asked("Reset")).toEqual([]);
});

/** A station of OCPP 2.0.1, and the state of its first outlet. */
async function aNewerStation(bridge: TestBridge) {
  const station = new TestStation(bridge.url(), { protocols: ["ocpp2.0.1"] });
  await once(station.socket, "open");
  return Object.assign(station, {
    report: (connectorId: number, connectorStatus: string, evseId = 1) =>
      station.call("StatusNotification", { timestamp: iso(), connectorStatus, evseId, connectorId }),
    event: (eventType: string, chargingState: string | null, more: object = {}) =>
      station.call("TransactionEvent", {
        eventType,
        timestamp: iso(),
        triggerReason: "Trigger",
        seqNo: 0,
        transactionInfo: { transactionId: "t-1", ...(chargingState === null ? {} : { chargingState }) },
        ...more,
      }),
    state: (outlet = 0) => {
      const { state, transaction, identity } =
        bridge.bridge.stations.get("CP-1")?.outlets[outlet]?.state ?? {};
      return [state, transaction, typeof identity === "object" ? (identity?.value ?? null) : identity];
    },
  });
}
const TOKEN = { idToken: { idToken: "04", type: "ISO14443" } };

test("a free connector beside the vehicle's own takes no vehicle away", async () => {
  await using bridge = await TestBridge.start();
  await using station = await aNewerStation(bridge);
  await station.report(1, "Available");
  await station.report(2, "Occupied");
  await station.event("Started", "Charging", { evse: { id: 1 }, ...TOKEN });
  expect(station.state()).toEqual(["charging", "t-1", "04"]);
  await station.report(1, "Available");
  expect(station.state()).toEqual(["charging", "t-1", "04"]);
  // A fault ends with the next status of any connector.
  await station.report(1, "Faulted");
  await station.report(1, "Available");
  expect(station.state()).toEqual(["connected", "t-1", "04"]);
  await station.report(2, "Available");
  expect(station.state()).toEqual(["unplugged", "t-1", null]);
  await station.event("Ended", null, { evse: { id: 1 } });
  expect(station.state()).toEqual(["unplugged", null, null]);
});

test("a bridge that starts in a session keeps the vehicle at a connector of unknown state, until the session ends", async () => {
  await using bridge = await TestBridge.start();
  await using station = await aNewerStation(bridge);
  const meterValue = [{ timestamp: iso(), sampledValue: [{ value: 5 }] }];
  await station.event("Updated", null, { evse: { id: 1 }, meterValue });
  await station.report(1, "Available");
  expect(station.state()).toEqual(["connected", "t-1", "unknown"]);
  await station.event("Ended", null, { evse: { id: 1 } });
  expect(station.state()).toEqual(["unplugged", null, null]);
});

test("a token before the cable belongs to the vehicle that comes", async () => {
  await using bridge = await TestBridge.start();
  await using station = await aNewerStation(bridge);
  await station.report(1, "Available");
  await station.event("Started", "Idle", { evse: { id: 1 } });
  await station.event("Updated", null, TOKEN);
  expect(station.state()).toEqual(["unplugged", "t-1", null]);
  await station.report(1, "Occupied");
  expect(station.state()).toEqual(["connected", "t-1", "04"]);
  await station.event("Updated", "Idle");
  expect(station.state()).toEqual(["unplugged", "t-1", null]);
  await station.event("Updated", "Charging");
  expect(station.state()).toEqual(["charging", "t-1", "04"]);
});

test("a relative limit in a session that began before the bridge has no end that counts from its unknown start", async () => {
  await using broker = await anEmbeddedBroker();
  const address = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await Floor.at(address, { protocolVersion: 4, ...DAEMON });
  const connectors = [{ id: 1, charger: "bay-01", profileKind: "relative" }];
  await using bridge = await TestBridge.start(
    { stations: [{ identity: "CP-1", password: { file: "password" }, connectors }] },
    address,
  );
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().connectors[0]?.broker === true);
  const schedules = async (seq: number) => {
    await floor.publish("setpointd/depot/chargers/bay-01/set", anOrder({ id: `7-${seq}`, seq }));
    // The start of a session may acknowledge the former order once more.
    await waitFor(() => floor.on("/bay-01/ack").some(({ text }) => text.includes(`"id":"7-${seq}"`)));
    return station
      .asked("SetChargingProfile")
      .slice(-2)
      .map(({ csChargingProfiles: profile }) => profile as Payload)
      .map(({ validTo, chargingSchedule }) => [validTo, Object.keys(chargingSchedule as Payload)]);
  };
  await station.call("MeterValues", METER("11040", iso(), 77));
  const rest = ["chargingRateUnit", "chargingSchedulePeriod"];
  const until = expect.any(String);
  expect(await schedules(1)).toEqual([
    [until, ["duration", ...rest]],
    [until, rest],
  ]);
  await station.call("StopTransaction", { transactionId: 77, meterStop: 5, timestamp: iso() });
  await station.call("StartTransaction", { connectorId: 1, idTag: "04", meterStart: 0, timestamp: iso() });
  expect(await schedules(2)).toEqual([
    [until, ["duration", ...rest]],
    [until, ["duration", ...rest]],
  ]);
});

const TWO_OUTLETS = {
  stations: [
    {
      identity: "CP-1",
      password: { file: "password" },
      connectors: [1, 2].map((id) => ({ id, charger: `bay-0${id}` })),
    },
  ],
};

test("a session that begins with a token is one of the EVSE at which the vehicle is plugged in", async () => {
  await using bridge = await TestBridge.start(TWO_OUTLETS);
  await using station = await aNewerStation(bridge);
  const meterValue = [{ timestamp: iso(), sampledValue: [{ value: 500 }] }];
  await station.event("Started", "Idle", { meterValue });
  await station.event("Updated", null, TOKEN);
  expect([station.state(0)[1], station.state(1)[1]]).toEqual([null, null]);
  await station.event("Updated", "EVConnected", { evse: { id: 2 } });
  expect(station.state(1)).toEqual(["connected", "t-1", "04"]);
  expect(bridge.bridge.stations.get("CP-1")?.outlets[1]?.state.startedWh).toBe(500);
  await station.event("Updated", "Charging");
  expect(station.state(1)[0]).toBe("charging");
  expect(station.state(0)[1]).toBeNull();
  await station.event("Ended", null);
  expect(station.state(1)[1]).toBeNull();
});

test("a station of OCPP 2.0.1 is asked for its session before its status", async () => {
  await using bridge = await TestBridge.start();
  await using station = await aNewerStation(bridge);
  await station.call("Heartbeat", {});
  await waitFor(() => station.asked("TriggerMessage").length === 2);
  expect(station.asked("TriggerMessage")).toEqual([
    { requestedMessage: "TransactionEvent", evse: { id: 1 } },
    { requestedMessage: "StatusNotification", evse: { id: 1, connectorId: 1 } },
  ]);
});

test("a bridge that starts in a session at one of two EVSEs follows it once an event has named the EVSE", async () => {
  await using bridge = await TestBridge.start(TWO_OUTLETS);
  await using station = await aNewerStation(bridge);
  await station.event("Updated", "Charging", { evse: { id: 2 } });
  await station.event("Updated", "SuspendedEVSE");
  expect(station.state(1)).toEqual(["paused", "t-1", "unknown"]);
  expect(station.state(0)[1]).toBeNull();
});

test("a bridge that starts in a session at one of two EVSEs finds it where no other EVSE can have it", async () => {
  await using bridge = await TestBridge.start(TWO_OUTLETS);
  await using station = await aNewerStation(bridge);
  const sessions = () => [station.state(0)[1], station.state(1)[1]];
  await station.event("Updated", "Charging");
  await station.report(1, "Occupied", 2);
  await station.event("Updated", "Charging");
  // Nothing is known of the first EVSE yet.
  expect(sessions()).toEqual([null, null]);
  await station.report(1, "Available", 1);
  await station.event("Updated", "SuspendedEVSE");
  expect(station.state(1)).toEqual(["paused", "t-1", "unknown"]);
  expect(sessions()).toEqual([null, "t-1"]);
  await station.event("Ended", null);
  await station.event("Updated", "Charging");
  expect(sessions()).toEqual([null, null]);
});

test("a session that began before the bridge is given to neither of two EVSEs that may have it", async () => {
  await using bridge = await TestBridge.start(TWO_OUTLETS);
  await using station = await aNewerStation(bridge);
  for (const evse of [1, 2]) await station.report(1, "Occupied", evse);
  await station.event("Updated", "Charging");
  expect([station.state(0)[1], station.state(1)[1]]).toEqual([null, null]);
  await station.event("Updated", "Charging", { evse: { id: 1 } });
  const other = { transactionInfo: { transactionId: "t-2", chargingState: "Charging" } };
  await station.event("Updated", null, other);
  expect([station.state(0)[1], station.state(1)[1]]).toEqual(["t-1", "t-2"]);
});

test("a session that may be at an EVSE that the configuration lacks is given to none", async () => {
  await using bridge = await TestBridge.start(TWO_OUTLETS);
  await using station = await aNewerStation(bridge);
  await station.report(1, "Available", 1);
  for (const evse of [2, 3]) await station.report(1, "Occupied", evse);
  await station.event("Updated", "Charging");
  expect([station.state(0)[1], station.state(1)[1]]).toEqual([null, null]);
});
