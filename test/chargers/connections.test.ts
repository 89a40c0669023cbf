import { connectAsync } from "mqtt";
import { describe, expect, test } from "vitest";
import { ChargerConnections } from "../../src/chargers/connections.ts";
import type { NamedBroker, ConnectionOptions } from "../../src/chargers/broker/address.ts";
import type { Command } from "../../src/domain/command.ts";
import type { Charger } from "../../src/domain/charger.ts";
import type { ChargerMessage } from "../../src/domain/telemetry.ts";
import { amperes, chargerId, eventId, instant, minutes, seconds, vehicleId } from "../../src/domain/units.ts";
import { aCharger } from "../support/aCharger.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { anEmbeddedBroker, DAEMON } from "../support/anEmbeddedBroker.ts";
import { waitFor } from "../support/waitFor.ts";
import { builtIn } from "./profile/aTrial.ts";
import { aLog, anObserver, quick, type LogLine } from "./aSession.ts";

const NOON = instant(Date.UTC(2026, 10, 21, 12));
const BAY = chargerId("bay-01");

const charger = (id: string): Charger => aCharger({ id });

const command = (chosen: Partial<Command> = {}): Command => ({
  charger: BAY,
  epoch: 7,
  seq: 1,
  desired: { kind: "current", amperes: amperes(16) },
  until: instant(NOON + minutes(10)),
  vehicle: vehicleId("veh-214"),
  event: eventId("EV-1"),
  cause: "event",
  decidedAt: NOON,
  ...chosen,
});

const box = (id: string, duo: number, parentIp: string): Charger =>
  aCharger({ id, profile: "openwb-secondary", params: { duo, parentIp } });

interface FleetUnderTest extends AsyncDisposable {
  readonly fleet: ChargerConnections;
  readonly messages: ChargerMessage[];
  readonly brokers: boolean[];
  readonly lines: LogLine[];
}

async function aFleet(url: string, chosen: Partial<ConnectionOptions> = {}): Promise<FleetUnderTest> {
  const messages: ChargerMessage[] = [];
  const brokers: boolean[] = [];
  const { log, lines } = aLog();
  const fleet = new ChargerConnections({
    site: "depot",
    clientId: "setpointd-depot-0123abcd",
    chargers: [charger("bay-01"), charger("bay-02")],
    profiles: new Map(),
    onDiscard: () => {},
    brokers: new Map([["", reached(url)]]),
    now: () => NOON,
    random: () => 1,
    log,
    onMessage: (message) => messages.push(message),
    onBroker: (_name, up) => brokers.push(up),
    timing: quick,
    ...chosen,
  });
  await waitFor(() => fleet.connected);
  return { fleet, messages, brokers, lines, [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose]() };
}

const reached = (url: string): NamedBroker => ({
  prefix: "setpointd",
  address: { url, username: DAEMON.username, password: () => DAEMON.password, tls: null },
});

test("a restart goes to the broker of its charger, by its make, and a make without one says why", async () => {
  await using broker = await anEmbeddedBroker();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  await using up = await aFleet(url, {
    profiles: builtIn,
    chargers: [
      charger("bay-01"),
      aCharger({ id: "bay-02", profile: "warp", params: { prefix: "warp2/AbCd" } }),
      aCharger({ id: "bay-03", profile: "wbec", params: { lp: 1 } }),
      aCharger({ id: "bay-04", profile: "ocpp2mqtt", params: { base: "ocpp/1" } }),
      { ...charger("bay-05"), broker: "yard" },
    ],
  });
  const client = await connectAsync(url);
  const heard: string[] = [];
  client.on("message", (topic, payload, { retain }) =>
    heard.push(`${topic} ${payload.toString()} ${retain}`),
  );
  await client.subscribeAsync(["setpointd/depot/chargers/+/reboot", "warp2/AbCd/reboot"], { qos: 1 });
  const restart = (id: string) => up.fleet.reboot(chargerId(id), "reboot-7-1");
  const why = (id: string) => up.fleet.cannotReboot(chargerId(id));
  expect([await restart("bay-01"), await restart("bay-02")]).toEqual([{ ok: true }, { ok: true }]);
  await waitFor(() => heard.length === 2);
  expect(heard).toEqual([
    'setpointd/depot/chargers/bay-01/reboot {"v":1,"id":"reboot-7-1","at":"2026-11-21T12:00:00.000Z"} false',
    "warp2/AbCd/reboot null false",
  ]);
  expect([why("bay-01"), why("bay-02")]).toEqual([null, null]);
  expect(why("bay-03")).toBe("wbec cannot reboot: no message is known that reboots this make over MQTT");
  expect(why("bay-04")).toBe(
    "ocpp2mqtt cannot reboot: the answer to a reset looks like the answer to a setpoint",
  );
  for (const id of ["bay-05", "bay-9"]) expect(why(id)).toMatch(/it has no topic/);
  expect(await restart("bay-03")).toMatchObject({ ok: false, reason: why("bay-03") });
  await client.endAsync();
  await broker[Symbol.asyncDispose]();
  await waitFor(() => !up.fleet.isLinked(BAY));
  expect(await restart("bay-01")).toMatchObject({ ok: false });
});

test("a charger with a named broker is reached over that one, and its messages count over no other", async () => {
  await using site = await anEmbeddedBroker();
  await using yard = await anEmbeddedBroker();
  const [siteUrl, yardUrl] = [site, yard].map(({ port }) => `mqtt://127.0.0.1:${port}`);
  await using up = await aFleet(siteUrl ?? "", {
    chargers: [charger("bay-01"), { ...charger("bay-02"), broker: "yard" }],
    brokers: new Map([
      ["", reached(siteUrl ?? "")],
      ["yard", reached(yardUrl ?? "")],
    ]),
  });
  const [onSite, onYard] = await Promise.all([connectAsync(siteUrl ?? ""), connectAsync(yardUrl ?? "")]);
  const heard: string[] = [];
  onSite.on("message", (topic) => heard.push(`site ${topic}`));
  onYard.on("message", (topic) => heard.push(`yard ${topic}`));
  await Promise.all(
    [onSite, onYard].map((client) => client.subscribeAsync("setpointd/depot/chargers/+/set", { qos: 1 })),
  );
  expect(await up.fleet.send(command(), seconds(180))).toEqual({ ok: true });
  expect(await up.fleet.send(command({ charger: chargerId("bay-02") }), seconds(180))).toEqual({ ok: true });
  await waitFor(() => heard.length === 2);
  expect(heard.toSorted()).toEqual([
    "site setpointd/depot/chargers/bay-01/set",
    "yard setpointd/depot/chargers/bay-02/set",
  ]);
  await onSite.publishAsync("setpointd/depot/chargers/bay-02/online", "true", { qos: 1 });
  await onYard.publishAsync("setpointd/depot/chargers/bay-02/online", "false", { qos: 1 });
  await waitFor(() => up.messages.length > 0);
  expect(up.messages).toMatchObject([{ charger: "bay-02", online: false }]);
  await Promise.all([onSite.endAsync(), onYard.endAsync()]);
});

test("works over the embedded broker: a setpoint goes down, an acknowledgement and telemetry come up", async () => {
  await using broker = await anEmbeddedBroker();
  const url = `mqtt://127.0.0.1:${broker.port}`;
  await using floor = await anObserver(url);
  await using depot = await aFleet(url);
  expect(await depot.fleet.send(command(), seconds(180))).toEqual({ ok: true });
  await waitFor(() => floor.seen.some((line) => line.startsWith("setpointd/depot/chargers/bay-01/set {")));
  await floor.client.publishAsync("setpointd/depot/chargers/bay-01/ack", '{"id":"7-1","accepted":true}', {
    qos: 1,
  });
  await floor.client.publishAsync("setpointd/depot/chargers/bay-01/telemetry", '{"powerW":5}', { qos: 1 });
  await waitFor(() => depot.messages.length === 2);
  expect(depot.messages).toEqual([
    { kind: "ack", charger: BAY, id: "7-1", accepted: true, value: null, reason: null },
    { kind: "telemetry", charger: BAY, telemetry: { at: NOON, powerW: 5 } },
  ]);
});

describe.skipIf(!mosquittoAvailable)("a fleet with mosquitto", () => {
  test("setpoints are not retained, state is", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    await depot.fleet.send(command(), seconds(180));
    await depot.fleet.publishState(BAY, '{"asked":16}');
    await using floor = await anObserver(broker.url);
    await waitFor(() => floor.seen.includes('setpointd/depot/chargers/bay-01/state {"asked":16}'));
    expect(floor.seen.filter((line) => line.includes("/set "))).toEqual([]);
  });

  test("a command whose end has passed is never sent, with or without a broker", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    await using floor = await anObserver(broker.url);
    for (const until of [NOON, instant(NOON - 1), instant(0)]) {
      expect(await depot.fleet.send(command({ until }), seconds(180))).toMatchObject({
        ok: false,
        retry: false,
      });
    }
    expect(await depot.fleet.send(command({ until: instant(NOON + 1), seq: 2 }), seconds(180))).toEqual({
      ok: true,
    });
    await waitFor(() => floor.seen.some((line) => line.includes('"id":"7-2"')));
    expect(floor.seen.filter((line) => line.includes('"id":"7-1"'))).toEqual([]);
  });

  test("F93: each publish expires at the broker with its lease or with its window, whichever ends first", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    await using floor = await anObserver(broker.url, { protocolVersion: 5 });
    const expiries: (number | undefined)[] = [];
    floor.client.on("message", (topic, _payload, { properties }) => {
      if (topic.endsWith("/set")) expiries.push(properties?.messageExpiryInterval);
    });
    await depot.fleet.send(command(), seconds(180));
    await depot.fleet.send(command({ until: instant(NOON + 90_500) }), seconds(180));
    await depot.fleet.send(command({ until: null, desired: { kind: "release" } }), seconds(60));
    await waitFor(() => expiries.length === 3);
    // Mosquitto passes on what is left by its own clock, which may have ticked meanwhile.
    for (const [place, whole] of [180, 91, 60].entries()) {
      expect([whole, whole - 1]).toContain(expiries[place]);
    }
  });

  test("F85: every return of the broker is reported, so that commands can be sent again", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    await broker.kill();
    await waitFor(() => !depot.fleet.connected);
    expect(await depot.fleet.send(command(), seconds(180))).toMatchObject({ ok: false, retry: true });
    await broker.start();
    await waitFor(() => depot.fleet.connected);
    expect(depot.brokers).toEqual([true, false, true]);
  });

  test("F87: a charger whose client was away during a publish gets it at its next message, once", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    const client = await connectAsync(broker.url);
    const publish = (leaf: string, payload: string, retain = false) =>
      client.publishAsync(`setpointd/depot/chargers/bay-01/${leaf}`, payload, { qos: 1, retain });
    const telemetry = () => publish("telemetry", '{"powerW":22000}');
    const kinds = async (count: number) => {
      await waitFor(() => depot.messages.length >= count);
      return depot.messages.splice(0).map(({ kind }) => kind);
    };
    expect(await depot.fleet.send(command(), seconds(180))).toEqual({ ok: true });
    // The refresh goes to nobody as well: the charger was away for longer.
    expect(await depot.fleet.send(command(), seconds(180))).toEqual({ ok: true });
    await publish("online", "false", true);
    await telemetry();
    await telemetry();
    expect(await kinds(4)).toEqual(["online", "forgot", "telemetry", "telemetry"]);
    // A charger that reads nothing, such as a meter, is not sent to at each of its messages.
    await depot.fleet.send(command(), seconds(180));
    await telemetry();
    expect(await kinds(1)).toEqual(["telemetry"]);
    await client.subscribeAsync("setpointd/depot/chargers/bay-01/set", { qos: 1 });
    await depot.fleet.send(command(), seconds(180));
    await telemetry();
    expect(await kinds(1)).toEqual(["telemetry"]);
    await client.unsubscribeAsync("setpointd/depot/chargers/bay-01/set");
    await depot.fleet.send(command(), seconds(180));
    await publish("online", "true");
    await telemetry();
    expect(await kinds(3)).toEqual(["forgot", "online", "telemetry"]);
    await client.endAsync();
  });

  test("F67: a hostile or unknown charger id never becomes a topic", async () => {
    await using broker = await Mosquitto.start();
    await using floor = await anObserver(broker.url);
    const ids = ["bay/../x", "+", "#", "", "a\0b", "\ud800", "x".repeat(70_000)];
    await using depot = await aFleet(broker.url, {
      chargers: [charger("bay-01"), ...ids.map((id) => charger(id))],
    });
    for (const id of [...ids, "unknown"]) {
      const sent = await depot.fleet.send(command({ charger: chargerId(id) }), seconds(180));
      expect(sent).toMatchObject({ ok: false, retry: false });
      expect(await depot.fleet.publishState(chargerId(id), "{}")).toMatchObject({ ok: false, retry: false });
    }
    expect(await depot.fleet.send(command(), seconds(180))).toEqual({ ok: true });
    await waitFor(() => floor.seen.some((line) => line.includes("/set ")));
    expect(floor.seen.map((line) => line.split(" ")[0])).toEqual([
      "setpointd/depot/gateway/online",
      "setpointd/depot/chargers/bay-01/set",
    ]);
    expect(depot.brokers).toEqual([true]);
  });

  test("F95: malformed messages are counted, logged once per charger, and do not affect other chargers", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    await using floor = await anObserver(broker.url);
    const telemetry = "setpointd/depot/chargers/bay-01/telemetry";
    for (const payload of ["?", '{"powerW":"x"}', Buffer.alloc(100_000), Buffer.from([0xff, 0xfe])]) {
      await floor.client.publishAsync(telemetry, payload, { qos: 1 });
    }
    for (let time = 0; time < 2; time++)
      await floor.client.publishAsync("setpointd/depot/chargers/stranger/telemetry", "?", { qos: 1 });
    await floor.client.publishAsync(telemetry, '{"powerW":7}', { qos: 1 });
    await waitFor(() => depot.messages.some(({ kind }) => kind === "telemetry"));
    expect(depot.fleet.discardedFrom(BAY)).toBe(4);
    expect(depot.fleet.discardedFrom(chargerId("bay-02"))).toBe(0);
    expect(depot.messages.map(({ kind }) => kind)).toEqual([
      "malformed",
      "malformed",
      "malformed",
      "malformed",
      "telemetry",
    ]);
    expect(depot.lines.filter(({ level }) => level === 40).map(({ msg }) => msg)).toEqual([
      "charger message discarded; further ones are only counted",
      "message on setpointd/depot/chargers/stranger/telemetry, which belongs to no charger: compare its id with the configuration",
    ]);
  });

  test("a message of no charger is logged for ten topics at most", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url);
    await using floor = await anObserver(broker.url);
    for (let id = 0; id < 12; id++)
      await floor.client.publishAsync(`setpointd/depot/chargers/stranger-${id}/telemetry`, "?", { qos: 1 });
    await floor.client.publishAsync("setpointd/depot/chargers/bay-01/telemetry", '{"powerW":7}', { qos: 1 });
    await waitFor(() => depot.messages.length > 0);
    expect(depot.lines.filter(({ level }) => level === 40)).toHaveLength(10);
  });

  test("F95: a charger that floods causes a count and one warning, while another one still gets its setpoint", async () => {
    await using broker = await Mosquitto.start();
    await using floor = await anObserver(broker.url);
    const discarded: string[] = [];
    const chargers = [
      aCharger({ id: "bay-01", profile: "go-e-v2", params: { serial: "000001" } }),
      aCharger({ id: "bay-02", profile: "warp", params: { prefix: "warp/a" } }),
    ];
    await using depot = await aFleet(broker.url, {
      chargers,
      profiles: builtIn,
      now: () => instant(Date.now()),
      onDiscard: (id, why) => discarded.push(`${id} ${why}`),
    });
    for (let n = 0; n < 3000; n += 1)
      floor.client.publish("go-eCharger/000001/nrg", n % 2 === 0 ? "NaN{" : Buffer.alloc(5000, 0xff), {
        qos: 0,
      });
    const until = instant(Date.now() + minutes(10));
    const told = command({ charger: chargerId("bay-02"), until });
    expect(await depot.fleet.send(told, seconds(180))).toEqual({ ok: true });
    await floor.client.publishAsync("warp/a/evse/external_current", '{"current":16000}', { qos: 1 });
    await waitFor(() => depot.messages.some(({ kind }) => kind === "ack"));
    await waitFor(() => discarded.length === 3000);
    expect(new Set(discarded)).toEqual(new Set(["bay-01 unreadable", "bay-01 tooMany"]));
    expect(depot.messages.filter(({ charger: id }) => id === BAY).length).toBeLessThan(1000);
    expect(depot.lines.filter(({ level }) => level === 40)).toHaveLength(1);
  });

  test("a charger on its own broker gets its commands and keepalives there, and its state is published at the site's broker", async () => {
    await using site = await Mosquitto.start();
    await using box = await Mosquitto.start();
    await using onSite = await anObserver(site.url);
    await using onBox = await anObserver(box.url);
    await using depot = await aFleet(site.url, {
      chargers: [
        aCharger({
          id: "bay-01",
          profile: "openwb-secondary",
          params: { parentIp: "192.0.2.1" },
          broker: "box",
        }),
      ],
      profiles: builtIn,
      brokers: new Map([
        ["", reached(site.url)],
        ["box", reached(box.url)],
      ]),
    });
    expect(depot.fleet.isLinked(BAY)).toBe(true);
    await waitFor(() =>
      onBox.seen.some((line) => line.startsWith("openWB/set/internal_chargepoint/global_data ")),
    );
    expect(await depot.fleet.send(command(), seconds(180))).toEqual({ ok: true });
    await depot.fleet.publishState(BAY, "{}");
    await waitFor(() => onBox.seen.includes("openWB/set/internal_chargepoint/0/data/set_current 16"));
    await waitFor(() => onSite.seen.includes("setpointd/depot/chargers/bay-01/state {}"));
    await onSite.client.publishAsync("openWB/internal_chargepoint/0/get/power", "1", { qos: 1 });
    await onBox.client.publishAsync("openWB/internal_chargepoint/0/get/power", "2", { qos: 1 });
    await waitFor(() => depot.messages.length > 0);
    expect(depot.messages).toMatchObject([{ kind: "telemetry", telemetry: { powerW: 2 } }]);
  });

  test("two broker names for one server do not disconnect each other", async () => {
    await using broker = await Mosquitto.start();
    await using depot = await aFleet(broker.url, {
      chargers: [aCharger({ id: "bay-01" }), aCharger({ id: "bay-02", broker: "yard" })],
      brokers: new Map([
        ["", reached(broker.url)],
        ["yard", { ...reached(broker.url), prefix: "yard" }],
      ]),
    });
    for (const charger of [BAY, chargerId("bay-02")])
      expect(await depot.fleet.send(command({ charger }), seconds(180))).toEqual({ ok: true });
    expect(depot.brokers).toEqual([true, true]);
  });

  test("the keepalive of one charger can be paused; one that another charger shares cannot", async () => {
    await using broker = await Mosquitto.start();
    const chargers = [
      box("bay-01", 0, "192.0.2.1"),
      box("bay-02", 0, "192.0.2.2"),
      box("bay-03", 1, "192.0.2.2"),
    ];
    await using depot = await aFleet(broker.url, { chargers, profiles: builtIn });
    const { fleet } = depot;
    expect(fleet.pauseKeepalives(chargerId("bay-02"))).toBe("bay-03 is kept alive by the same message");
    expect(fleet.pauseKeepalives(BAY)).toBeTypeOf("function");
    expect(fleet.shows(BAY)).toBeNull();
    await using onBox = await anObserver(broker.url);
    await onBox.client.publishAsync("openWB/internal_chargepoint/0/get/evse_current", "13", { qos: 1 });
    await waitFor(() => fleet.shows(BAY) !== null);
    expect(fleet.shows(BAY)).toEqual({ kind: "current", amperes: 13 });
  });

  test("in observe mode only telemetry is requested, and no charger is kept obeying but the one under trial", async () => {
    await using broker = await Mosquitto.start();
    await using floor = await anObserver(broker.url);
    await using depot = await aFleet(broker.url, {
      chargers: [
        box("box-01", 0, "192.0.2.1"),
        aCharger({
          id: "bay-01",
          profile: "everest-api-v1",
          params: { limitsModule: "limits", evseModule: "evse" },
        }),
        aCharger({ id: "bay-02", profile: "victron-evcs", params: { portalId: "gx" } }),
      ],
      profiles: builtIn,
      observes: true,
    });
    const said = (what: string) => floor.seen.filter((line) => line.includes(what)).length;
    await waitFor(() => said("R/gx/keepalive") > 0);
    expect([said("global_data"), said("communication_check")]).toEqual([0, 0]);
    const rest = depot.fleet.resumeKeepalives(BAY);
    await waitFor(() => said("communication_check") > 0);
    rest();
    expect(said("global_data")).toBe(0);
    depot.fleet.observe(false);
    await waitFor(() => said("global_data") > 0);
    expect(depot.fleet.resumeKeepalives(chargerId("bay-09"))).toBeTypeOf("function");
  });

  test("a charger on another broker or with another profile gets no native messages", async () => {
    await using broker = await Mosquitto.start();
    const chargers = [
      aCharger({ id: "bay-01", broker: "yard" }),
      aCharger({ id: "bay-02", profile: "warp" }),
    ];
    await using depot = await aFleet(broker.url, { chargers });
    for (const { id } of chargers) {
      expect(await depot.fleet.send(command({ charger: id }), seconds(180))).toMatchObject({
        ok: false,
        retry: false,
      });
    }
  });
});
