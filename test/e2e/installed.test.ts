import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";

import { BootedMachine, bootMissing } from "../support/bootedMachine.ts";
import { Authority } from "../support/certificates.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { postgresMissing } from "../support/postgres.ts";
import { waitFor } from "../support/waitFor.ts";

const missing = mosquittoAvailable ? bootMissing() : "no mosquitto";
if (missing !== null) console.warn(`the installed services are not tried: ${missing}`);

const VTN = {
  // Nobody answers there: the services have to start without a partner.
  baseUrl: "http://127.0.0.1:9/api",
  tokenUrl: "http://127.0.0.1:9/connect/token",
  clientId: "depot",
  clientSecret: { file: "vtn-client-secret" },
};
const TLS = { cert: "/etc/setpointd/tls/webhook.crt", key: "/etc/setpointd/tls/webhook.key" };
const CONFIG = {
  site: { id: "depot" },
  vtn: VTN,
  webhook: {
    // An address that is not there at the start.
    listen: "192.0.2.1:8090",
    tls: TLS,
    auth: { hmac: { secret: { file: "webhook-secret" } } },
  },
  operator: { listen: "127.0.0.1:8080" },
  mqtt: { url: "mqtt://127.0.0.1:1883" },
  chargers: [{ id: "bay-01", current: { min: 6, max: 32 } }],
  vehicles: [{ id: "bus-1", charger: "bay-01" }],
};
const OCPP = {
  site: "depot",
  mqtt: { url: "mqtt://127.0.0.1:1883" },
  ocpp: { listen: "127.0.0.1:9000" },
  stations: [
    { identity: "CP-1", password: { file: "station_cp-1" }, connectors: [{ id: 1, charger: "bay-01" }] },
  ],
};
const FLEET = {
  state: {
    folder: "./fleet-state",
    postgres: { url: { file: "database-url" }, siteKeys: { file: "site-keys" } },
  },
  vtn: VTN,
  operator: { listen: "127.0.0.1:8081" },
  mqtt: { url: "mqtt://127.0.0.1:1883" },
};

describe.skipIf(missing !== null)("the package on a machine with systemd", () => {
  const folder = mkdtempSync(join(tmpdir(), "installed-"));
  const authority = new Authority();
  let machine: BootedMachine;

  beforeAll(async () => {
    const pack = new URL("../../packaging/pack.ts", import.meta.url).pathname;
    const arch = process.arch === "arm64" ? "arm64" : "x64";
    execFileSync(process.execPath, [pack, "--out", folder, "--arch", arch, "--form", "deb"]);
    machine = await BootedMachine.boot(join(folder, readdirSync(folder)[0] ?? ""));
    // A shared machine stands still for seconds: the bound on a stop is not tried here.
    for (const unit of ["setpointd", "setpointd-ocpp"])
      await machine.write(
        `/etc/systemd/system/${unit}.service.d/slow.conf`,
        "[Service]\nTimeoutStopSec=60\n",
      );
  }, 300_000);
  afterAll(async () => {
    await machine[Symbol.asyncDispose]();
    authority[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });

  const install = () => machine.output("sh", "-c", "dpkg --install /run/setpointd_*.deb");
  const systemctl = (...args: readonly string[]) => machine.output("systemctl", ...args);
  const running = async (unit: string) => ({
    state: await machine.property(unit, "ActiveState"),
    restarts: Number(await machine.property(unit, "NRestarts")),
    pid: await machine.property(unit, "MainPID"),
  });
  const logged = (unit: string, text: string) =>
    waitFor(async () => (await machine.journal(unit)).includes(text), { everyMs: 200 });
  const certify = async (name: string) => {
    const { cert, key } = authority.issue(name);
    await machine.write(TLS.cert, readFileSync(cert, "utf8"));
    await machine.write(TLS.key, readFileSync(key, "utf8"), "640", "setpointd");
  };
  /** A program of JavaScript, run by the runtime of the package. */
  const ask = async (code: string) => (await machine.output("/usr/lib/setpointd/node", "-e", code)).trim();
  const readiness = () =>
    ask('fetch("http://127.0.0.1:8080/readyz").then((it) => it.text()).then(console.log)');
  const servedName = () =>
    ask(`const socket = require("node:tls").connect({ host: "192.0.2.1", port: 8090, rejectUnauthorized: false }, () => {
      console.log(socket.getPeerCertificate().subject.CN); socket.destroy() })`);
  const chargerConnects = (password: string) =>
    ask(`const authorization = "Basic " + btoa("CP-1:${password}");
      const socket = new WebSocket("ws://127.0.0.1:9000/ocpp/CP-1", { protocols: ["ocpp1.6"], headers: { authorization } });
      for (const type of ["open", "error"]) socket["on" + type] = () => { console.log(type); process.exit() };`);

  test("setpointd.service starts, is ready, and a member of its group sees its status", async () => {
    expect(await install()).toContain("setpointd is installed and not started");
    await machine.write("/etc/mosquitto/mosquitto.conf", "listener 1883 127.0.0.1\nallow_anonymous true\n");
    await machine.write("/etc/setpointd/config.yaml", stringify(CONFIG));
    for (const name of ["vtn-client-secret", "webhook-secret"])
      await machine.write(`/etc/setpointd/credentials/${name}`, "secret of the test\n", "600");
    await certify("first");
    await systemctl("start", "mosquitto");
    await systemctl("enable", "--now", "setpointd");
    expect(await running("setpointd")).toMatchObject({ state: "active", restarts: 0 });
    expect(await machine.property("setpointd", "StatusText")).toBe("controlling");
    expect(await readiness()).toBe("ready");
    await logged("setpointd", "broker connected");
    await machine.output("useradd", "--groups", "setpointd", "anna");
    expect(await machine.output("runuser", "-u", "anna", "--", "setpointd", "status")).toContain(
      "broker: connected",
    );
    const stranger = await machine.run("runuser", "-u", "nobody", "--", "setpointd", "status");
    expect(stranger).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("a member of the daemon's group may ask"),
    });
  });

  test("a network that comes up later brings the webhook", async () => {
    expect(await machine.output("setpointd", "status")).toContain("no webhook delivery can arrive");
    await machine.output("ip", "address", "add", "192.0.2.1/32", "dev", "lo");
    await logged("setpointd", "the webhook listens now");
    expect(await machine.output("setpointd", "status")).toContain("problems: 1\n");
  });

  test("root posts a signed event to it, and verifies its record", async () => {
    expect(await machine.output("setpointd", "webhook", "test")).toContain("202");
    expect(await machine.output("setpointd", "audit", "verify")).toContain("the record is whole");
  });

  test("reload serves a renewed certificate, and the process stays", async () => {
    const before = await running("setpointd");
    expect(await servedName()).toBe("first");
    await certify("second");
    await systemctl("reload", "setpointd");
    await waitFor(async () => (await servedName()) === "second", { everyMs: 200 });
    expect(await running("setpointd")).toEqual(before);
  });

  test("a process that is killed is started again", async () => {
    const before = await running("setpointd");
    await systemctl("kill", "--kill-whom=main", "--signal=KILL", "setpointd");
    await waitFor(async () => (await running("setpointd")).restarts === 1, { everyMs: 200 });
    await waitFor(async () => (await running("setpointd")).state === "active", { everyMs: 200 });
    expect((await running("setpointd")).pid).not.toBe(before.pid);
    expect(await readiness()).toBe("ready");
  });

  test("an upgrade restarts it once", async () => {
    const before = await running("setpointd");
    expect(await install()).not.toContain("not started");
    const after = await running("setpointd");
    expect(after.state).toBe("active");
    expect(after.pid).not.toBe(before.pid);
  });

  test("setpointd-ocpp.service starts, lets a charger in by its password, reloads and stops", async () => {
    await machine.write("/etc/setpointd/ocpp.yaml", stringify(OCPP));
    await machine.write("/etc/setpointd/stations/cp-1", "password-of-cp-1\n", "600");
    await systemctl("start", "setpointd-ocpp");
    const started = await running("setpointd-ocpp");
    expect(started).toMatchObject({ state: "active", restarts: 0 });
    expect(await chargerConnects("password-of-cp-1")).toBe("open");
    await systemctl("reload", "setpointd-ocpp");
    await logged("setpointd-ocpp", "no certificate is configured");
    expect(await running("setpointd-ocpp")).toEqual(started);
    await systemctl("stop", "setpointd-ocpp");
    expect(await machine.property("setpointd-ocpp", "Result")).toBe("success");
  });

  test.skipIf(postgresMissing() !== null)(
    "setpointd-fleet.service starts, leads a site, reloads and stops",
    async () => {
      const programs = "/usr/lib/postgresql/*/bin";
      await machine.output(
        "runuser",
        "-u",
        "postgres",
        "--",
        "sh",
        "-c",
        `${programs}/initdb --no-sync --auth=trust /tmp/cluster`,
      );
      const server = `exec ${programs}/postgres -D /tmp/cluster -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp -c fsync=off`;
      await machine.output("systemd-run", "--unit=database", "--uid=postgres", "sh", "-c", server);
      const secrets = {
        "database-url": "postgres://postgres@127.0.0.1/postgres",
        "site-keys": Buffer.alloc(32, 7).toString("base64"),
      };
      for (const [name, text] of Object.entries(secrets))
        await machine.write(`/etc/setpointd/credentials/${name}`, text, "600");
      await machine.write("/etc/setpointd/fleet.yaml", stringify(FLEET));
      const { chargers, vehicles } = CONFIG;
      await machine.write(
        "/etc/setpointd/north.yaml",
        stringify({ site: { id: "north" }, chargers, vehicles }),
      );
      await waitFor(async () => (await machine.journal("database")).includes("ready to accept connections"));
      await machine.output(
        "setpointd",
        "site",
        "put",
        "/etc/setpointd/north.yaml",
        "-c",
        "/etc/setpointd/fleet.yaml",
      );
      await systemctl("start", "setpointd-fleet");
      const started = await running("setpointd-fleet");
      expect(started).toMatchObject({ state: "active", restarts: 0 });
      await logged("setpointd-fleet", "broker connected");
      await systemctl("reload", "setpointd-fleet");
      await logged("setpointd-fleet", "nothing to read again");
      expect(await running("setpointd-fleet")).toEqual(started);
      await systemctl("stop", "setpointd-fleet");
      expect(await machine.property("setpointd-fleet", "Result")).toBe("success");
    },
  );

  test("a shutdown stops setpointd before its broker, and it ends by itself", async () => {
    await systemctl("stop", "mosquitto", "setpointd");
    expect(await machine.property("setpointd", "Result")).toBe("success");
    const order = (await machine.output("journalctl", "--output=cat", "--no-pager")).split("\n");
    const stopped = order.findIndex((line) => line.startsWith("Stopped setpointd.service"));
    expect(stopped).toBeGreaterThan(0);
    expect(order.findIndex((line) => line.startsWith("Stopping mosquitto.service"))).toBeGreaterThan(stopped);
  });

  test("removal keeps state and configuration, and a purge takes them", async () => {
    await systemctl("start", "setpointd");
    await machine.output("dpkg", "--remove", "setpointd");
    expect(await running("setpointd")).toMatchObject({ state: "inactive" });
    await machine.output(
      "test",
      "-e",
      "/var/lib/setpointd/state/site.key",
      "-a",
      "-e",
      "/etc/setpointd/config.yaml",
    );
    await machine.output("dpkg", "--purge", "setpointd");
    const left =
      "ls -d /etc/setpointd /var/lib/setpointd* /var/lib/private/setpointd* /var/cache/private/setpointd*";
    expect((await machine.run("sh", "-c", left)).stdout).toBe("");
  });
});
