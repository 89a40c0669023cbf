import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { Floor } from "../support/aFloor.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { freePort } from "../support/freePort.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";

const PASSWORDS = { depot: "password-of-the-depot", floor: "password-of-the-floor" };
const ENV = { MQTT_PASSWORD: PASSWORDS.depot };
const MINUTE = 60_000;

const anHourAgo = (): string => new Date(Date.now() - 60 * MINUTE).toUTCString();

const checkLive = (site: Site, env = ENV) => setpointd(["check", "-c", site.config, "--live"], { env });

/** Where the daemon has a user of its own, and a port for its webhook that is known. */
async function aLiveSite(broker: Mosquitto): Promise<Site> {
  const mqtt = { url: broker.url, username: "depot", password: { env: "MQTT_PASSWORD" } };
  const webhook = {
    listen: `127.0.0.1:${await freePort()}`,
    auth: { hmac: { secret: { file: "webhook-secret" } } },
  };
  return aSite({ over: { mqtt, webhook } });
}

/** Bays that say something each second until they are disposed of. */
function talking(floor: Floor, ...bays: readonly string[]): Disposable {
  const timer = setInterval(() => {
    for (const bay of bays) {
      const telemetry = JSON.stringify({ at: new Date().toISOString(), state: "connected", powerW: 0 });
      floor.publish(`setpointd/depot/chargers/${bay}/telemetry`, telemetry).catch(() => undefined);
    }
  }, 1000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

describe.skipIf(!mosquittoAvailable)("setpointd check --live", () => {
  test(
    "without a daemon it connects by itself, and names what the broker refuses and which bay is silent",
    async () => {
      const acl = ["user depot", "topic readwrite setpointd/#", "user floor", "topic readwrite #"];
      const denied = "setpointd/depot/chargers/bay-02/set";
      await using broker = await Mosquitto.start({
        users: PASSWORDS,
        acl: [...acl.slice(0, 2), `topic deny ${denied}`, ...acl.slice(2)],
      });
      await using site = await aLiveSite(broker);
      await using floor = await Floor.at(broker.url, {
        username: "floor",
        password: PASSWORDS.floor,
        protocolVersion: 5,
      });
      await floor.publish("setpointd/depot/chargers/bay-04/online", "true", true);
      using _bays = talking(floor, "bay-01", "bay-02");
      site.partner.put(anEvent("EV-1", { lastsMs: MINUTE }));

      const { code, stdout } = await checkLive(site);
      expect(code).toBe(1);
      const lines = stdout.split("\n");
      for (const line of [
        `ok      token: issued by ${new URL(site.partner.tokenUrl).host} to depot`,
        "ok      events: 1 in the partner's list",
        "ok      mqtt: logged in, MQTT 5",
        "ok      mqtt subscribe: every topic that setpointd reads",
        "ok      publish setpointd/depot/chargers/bay-01/set: the broker accepts it",
        "ok      bay-01: sends messages",
        "ok      bay-02: sends messages",
        "FAILED  bay-03: no message within 30 s",
        "FAILED  bay-04: no message within 30 s: only retained ones",
        "3 of the above have failed",
      ])
        expect(lines).toContain(line);
      expect(stdout).toMatch(/^ok {6}clock: \d s (behind|ahead of) the partner's$/m);
      expect(stdout).toMatch(/^ok {6}webhook: 127.0.0.1:\d+ is free, and setpointd will listen there/m);
      expect(stdout).toContain(
        `FAILED  publish ${denied}: Publish error: Not authorized (topic ${denied})\n`,
      );
      expect(stdout).toMatch(/^\.{3} {5}waiting for \d of 4 chargers: .*bay-03/m);
      // Nobody was commanded, and the daemon was not passed for.
      expect(floor.commands.map(({ text }) => text)).toEqual(['{"v":0}', '{"v":0}', '{"v":0}']);
      expect(floor.on("gateway/online")).toEqual([]);
    },
    2 * MINUTE,
  );

  test(
    "a running daemon goes on undisturbed, also where its broker makes one client of all logins of a user",
    async () => {
      await using broker = await Mosquitto.start({
        users: PASSWORDS,
        extra: ["use_username_as_clientid true"],
      });
      await using site = await aLiveSite(broker);
      await using floor = await Floor.at(broker.url, {
        username: "floor",
        password: PASSWORDS.floor,
        protocolVersion: 5,
      });
      using _bays = talking(floor, "bay-01", "bay-02", "bay-03", "bay-04");
      await using daemon = await site.run(ENV);
      const { code, stdout } = await checkLive(site);
      expect(stdout).toContain("setpointd is running: brokers and chargers are tried through it\n");
      expect(stdout).toContain(
        `ok      webhook: the running daemon answers an echo at ${daemon.webhookUrl}\n`,
      );
      expect(stdout).toContain(
        "ok      publish setpointd/depot/chargers/bay-04/set: the broker accepts it\n",
      );
      expect(stdout).toMatch(/^ok {6}bay-04: last message \d s ago$/m);
      expect(stdout).toContain("all that was tried works\n");
      expect(code).toBe(0);
      expect(daemon.lines.filter(({ msg }) => /broker (un|connection)|another client/.test(msg))).toEqual([]);
      const connected = daemon.lines.filter(({ msg }) => msg === "broker connected");
      expect([connected.length, await daemon.hasBroker()]).toEqual([1, true]);
    },
    2 * MINUTE,
  );

  test(
    "a failed step names the remedy: clock, port, password",
    async () => {
      const partner = createServer((request, response) => {
        response.setHeader("date", anHourAgo()).setHeader("content-type", "application/json");
        response.end(request.url === "/token" ? '{"access_token":"abc","expires_in":3600}' : "[]");
      });
      await new Promise<void>((up) => partner.listen(0, "127.0.0.1", up));
      const { port } = partner.address() as AddressInfo;
      await using broker = await Mosquitto.start({ users: PASSWORDS });
      await using site = await aLiveSite(broker);
      const baseUrl = `http://127.0.0.1:${port}`;
      const clientSecret = { file: "client-secret" };
      site.configure({
        vtn: { baseUrl, tokenUrl: `${baseUrl}/token`, clientId: "depot", clientSecret },
        // Taken by the partner.
        webhook: { listen: `127.0.0.1:${port}` },
      });
      const { code, stdout } = await checkLive(site, { MQTT_PASSWORD: "another-password-altogether" });
      partner.close();
      expect(stdout).toContain("ok      events: 0 in the partner's list\n");
      expect(stdout).toMatch(
        /^FAILED {2}clock: 3(600|599|601) s ahead of the partner's\n {8}at most 300 s \(clock.maxSkew\): set the time/m,
      );
      expect(stdout).toMatch(/^FAILED {2}webhook: 127.0.0.1:\d+ cannot be listened on: .*EADDRINUSE/m);
      expect(stdout).toMatch(
        /^FAILED {2}mqtt: the broker .* refuses us .*\n {8}a running broker that accepts the login: check mqtt.url/m,
      );
      expect(stdout).toContain("-       bay-01: its broker is not connected\n");
      expect([code, stdout.split("\n").at(-2)]).toEqual([1, "3 of the above have failed"]);
    },
    MINUTE,
  );

  test(
    "without a token the other steps run all the same, and a charger of another make is listed with the verb that tries it",
    async () => {
      await using broker = await Mosquitto.start();
      await using site = await aLiveSite(broker);
      writeFileSync(join(site.directory, "client-secret"), "not the one that was issued", { mode: 0o600 });
      const warp = { id: "yard-01", profile: "warp", params: { prefix: "warp3/AbCd" }, current: { max: 16 } };
      const bay = { id: "bay-01", current: { max: 16 } };
      site.configure({ chargers: [bay, warp], vehicles: [], mqtt: { url: broker.url } });
      const { code, stdout } = await checkLive(site);
      expect(stdout).toMatch(
        /^FAILED {2}token: .*\n {8}the partner does not know these credentials: check vtn.clientId/m,
      );
      expect(stdout).toContain("-       events: needs a token\n");
      for (const line of [
        "FAILED  publish setpointd/depot/chargers/bay-01/set: no client subscribes to it",
        "-       publish to yard-01: would command a warp: setpointd commission yard-01 tries it",
        "FAILED  yard-01: no message within 30 s",
      ])
        expect(stdout).toContain(`${line}\n`);
      expect(code).toBe(1);
    },
    2 * MINUTE,
  );
});
