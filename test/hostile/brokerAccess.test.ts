import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { Floor } from "../support/aFloor.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { Gate } from "../support/aGate.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Authority } from "../support/certificates.ts";

const MINUTE = 60_000;
const PATIENCE = { timeoutMs: 30_000 };
const read = (path: string): string => readFileSync(path, "utf8");
const bay = (number: number) => ({ id: `bay-0${number}`, current: { min: 6, max: 32 } });
const BOTH = { lastsMs: MINUTE, vehicles: ["veh-1", "veh-2"] };

describe.skipIf(!mosquittoAvailable).concurrent("a broker that wants to know who we are", () => {
  test("TLS with its own authority and a client certificate is accepted; another authority is refused, and that is logged once", async () => {
    using authority = new Authority();
    const [server, gateway] = [authority.issue("broker"), authority.issue("gateway")];
    const files = [`cafile ${authority.ca}`, `certfile ${server.cert}`, `keyfile ${server.key}`];
    await using broker = await Mosquitto.start({ extra: [...files, "require_certificate true"] });
    const url = `mqtts://localhost:${broker.port}`;
    const ours = { ca: authority.caText, cert: read(gateway.cert), key: read(gateway.key) };
    await using floor = await Floor.at(url, { protocolVersion: 5, ...ours });
    const pem = { cert: { file: gateway.cert }, key: { file: gateway.key } };
    await using site = await aSite({ over: { mqtt: { url, tls: { ca: { file: authority.ca }, ...pem } } } });
    {
      await using daemon = await site.run();
      await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE }));
      await floor.nth("bay-01", 1);
      await daemon.end("SIGTERM");
    }
    site.configure({ mqtt: { url, tls: { ca: { file: authority.ca } } } });
    {
      await using daemon = await site.start();
      const told = await waitFor(() => daemon.line("broker unreachable"), PATIENCE);
      expect(told["reason"]).toBe("TLS: tlsv13 alert certificate required");
    }
    using other = new Authority();
    site.configure({ mqtt: { url, tls: { ca: { file: other.ca }, ...pem } } });
    await using daemon = await site.start();
    const told = await waitFor(() => daemon.line("broker unreachable"), PATIENCE);
    expect(told["reason"]).toMatch(/certificate|verify|signature/i);
    expect(daemon.lines.filter(({ msg }) => msg.includes("broker unreachable"))).toHaveLength(1);
    expect(await daemon.hasBroker()).toBe(false);
  });

  test("F83: a password that is rotated at the broker first, then in our file, needs no restart and shows in no line", async () => {
    await using broker = await Mosquitto.start({ users: { depot: "first-word", floor: "floor" } });
    const over = { mqtt: { url: broker.url, username: "depot", password: { file: "mqtt-password" } } };
    await using site = await aSite({ over });
    writeFileSync(join(site.directory, "mqtt-password"), "first-word\n", { mode: 0o600 });
    await using floor = await Floor.at(broker.url, {
      username: "floor",
      password: "floor",
      protocolVersion: 5,
    });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE }));
    await floor.nth("bay-01", 1);
    await broker.changePasswords({ depot: "second-word", floor: "floor" });
    await broker.kill();
    await broker.start();
    await floor.listening();
    const refusal = `the broker 127.0.0.1:${broker.port} refuses us (Not authorized): check mqtt.username and mqtt.password`;
    await waitFor(() => daemon.line(refusal), PATIENCE);
    writeFileSync(join(site.directory, "mqtt-password"), "second-word\n", { mode: 0o600 });
    await waitFor(() => daemon.hasBroker(), PATIENCE);
    await floor.nth("bay-01", 2);
    expect(floor.told("bay-01")).toEqual(["16 A EV-1", "16 A EV-1"]);
    expect(daemon.output).not.toMatch(/(first|second)-word/);
  });

  test("F86: a topic that is denied costs its own charger only, is tried ever more rarely, and is on record", async () => {
    const acl = ["user depot", "topic readwrite #", "topic deny setpointd/depot/chargers/bay-01/set"];
    acl.push("user floor", "topic readwrite #");
    await using broker = await Mosquitto.start({ users: { depot: "one", floor: "floor" }, acl });
    const password = { env: "MQTT_PASSWORD" };
    await using site = await aSite({ over: { mqtt: { url: broker.url, username: "depot", password } } });
    await using floor = await Floor.at(broker.url, {
      username: "floor",
      password: "floor",
      protocolVersion: 5,
    });
    await using daemon = await site.run({ MQTT_PASSWORD: "one" });
    await daemon.deliver(anEvent("EV-1", BOTH));
    await floor.nth("bay-02", 1);
    const failed = () =>
      daemon.lines.filter(({ msg }) => msg.includes("not sent: ") && msg.includes("bay-01"));
    await waitFor(() => failed().length > 0);
    await daemon.deliver(anEvent("EV-1", { ...BOTH, amperes: 10 }));
    await floor.nth("bay-02", 2);
    await waitFor(() => failed().length === 2);
    expect(floor.told("bay-02")).toEqual(["16 A EV-1", "10 A EV-1"]);
    expect(floor.told("bay-01")).toEqual([]);
    expect(await daemon.hasBroker()).toBe(true);
  });

  test("a further broker that goes and comes leaves the site's own alone, and its chargers receive their setpoints once", async () => {
    await using yard = await Mosquitto.start();
    // Only our way to it breaks: whether its chargers are back before us must not decide what the test sees.
    await using gate = await Gate.before(yard.port);
    await gate.open();
    await using site = await aSite();
    site.configure({
      brokers: { yard: { url: `mqtt://127.0.0.1:${gate.port}` } },
      chargers: [bay(1), { ...bay(2), broker: "yard" }, bay(3), bay(4)],
    });
    await using floor = await Floor.at(yard.url);
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", BOTH));
    await Promise.all([site.floor.nth("bay-01", 1), floor.nth("bay-02", 1)]);
    await gate.shut();
    await waitFor(async () => !(await daemon.hasBroker()), PATIENCE);
    for (const amperes of [12, 10]) await daemon.deliver(anEvent("EV-1", { ...BOTH, amperes }));
    await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");
    const heard = site.floor.sets("bay-01").length;
    await gate.open();
    await floor.nth("bay-02", 2, PATIENCE.timeoutMs);
    await waitFor(() => daemon.hasBroker(), PATIENCE);
    await daemon.deliver(anEvent("EV-4", { lastsMs: MINUTE, vehicles: ["veh-4"] }));
    await site.floor.nth("bay-04", 1);
    expect(floor.told("bay-02")).toEqual(["16 A EV-1", "10 A EV-1"]);
    expect(site.floor.sets("bay-01")).toHaveLength(heard);
    expect(site.floor.sets("bay-02")).toEqual([]);
  });
});
