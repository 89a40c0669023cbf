import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type AgentOptions, get } from "node:https";
import { join } from "node:path";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";

import { Daemon } from "../support/aDaemon.ts";
import { aFleet, siteFile } from "../support/aFleet.ts";
import { aSite, WEBHOOK_SECRET } from "../support/aSite.ts";
import { Authority } from "../support/certificates.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { Postgres, postgresMissing } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

/** Someone who talks HTTPS to the webhook of a daemon, and looks at its certificate. */
class Visitor implements Disposable {
  readonly #agent: Agent;
  readonly #port: number;

  constructor(daemon: Daemon, ca: string, options: AgentOptions = {}) {
    this.#agent = new Agent({ ca, maxCachedSessions: 0, ...options });
    this.#port = Number(new URL(daemon.webhookUrl).port);
  }

  /** The serial number of the certificate on the connection over which the echo came back. */
  async echo(): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const path = "/webhooks/events?echo=hello";
    get({ agent: this.#agent, host: "localhost", port: this.#port, path }, (response) => {
      const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
      response.resume().on("end", () => resolve(serialNumber));
    }).on("error", reject);
    return promise;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

const told = (daemon: Daemon, words: string) =>
  daemon.lines.filter(({ msg }) => msg.includes(words)).map(({ level, msg }) => ({ level, msg }));

describe.skipIf(!mosquittoAvailable)("SIGHUP", () => {
  test("F72: a renewed certificate is served to new connections, the open ones go on; a broken one changes nothing and is an alarm", async () => {
    using authority = new Authority();
    const tls = authority.issue("gateway", 20);
    await using site = await aSite({ over: { webhook: { listen: "127.0.0.1:0", auth: "none", tls } } });
    await using daemon = await site.run();
    const warning = await waitFor(() => daemon.line("certificate webhook.tls.cert (CN=gateway) expires in"));
    expect(warning.level).toBe(40);
    const checked = await setpointd(["check", "-c", site.config]);
    expect([checked.code, checked.stderr]).toEqual([
      0,
      expect.stringContaining("webhook.tls.cert (CN=gateway) expires in"),
    ]);

    using open = new Visitor(daemon, authority.caText, { keepAlive: true, maxSockets: 1 });
    using passing = new Visitor(daemon, authority.caText);
    const first = await open.echo();
    expect(await passing.echo()).toBe(first);
    authority.issue("gateway", 90);
    daemon.signal("SIGHUP");
    await waitFor(() => told(daemon, "was read again").length === 1);
    const renewed = await passing.echo();
    expect(renewed).not.toBe(first);
    expect(await open.echo()).toBe(first);
    const ends = Math.round(Date.now() / 1000) + 90 * 86_400;
    expect(await daemon.view("/api/v1/status")).toMatchObject({
      certificates: [{ certificate: "webhook.tls.cert", subject: "CN=gateway", alarm: null }],
    });
    const metric =
      /^setpointd_certificate_expiry_timestamp_seconds\{certificate="webhook.tls.cert"\} (\d+)$/m;
    const [, shown] = metric.exec((await daemon.get("/metrics")).text) ?? [];
    expect(Math.abs(Number(shown) - ends)).toBeLessThan(3600);

    writeFileSync(tls.cert, "-----BEGIN CERTIFICATE-----\nhalf of it");
    daemon.signal("SIGHUP");
    await waitFor(() => told(daemon, "was not replaced").length === 1);
    expect(told(daemon, "was not replaced")).toEqual([
      {
        level: 50,
        msg: `certificate webhook.tls.cert was not replaced, the one before stays in use: ${tls.cert}, which holds no certificate that can be read`,
      },
    ]);
    expect(await passing.echo()).toBe(renewed);
    const rows = await daemon.view<{ kind: string; words: string }[]>("/api/v1/audit");
    expect(rows.filter(({ words }) => words.includes("webhook.tls.cert"))).toHaveLength(3);
    const again = await setpointd(["check", "-c", site.config]);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain(`webhook.tls.cert\n  found     ${tls.cert}, which holds no certificate`);
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("F72: a broker is met with renewed certificates at the next connection, without a restart", async () => {
    using authority = new Authority();
    const [server, gateway] = [authority.issue("broker"), authority.issue("gateway")];
    const lines = [`cafile ${authority.ca}`, `certfile ${server.cert}`, `keyfile ${server.key}`];
    await using broker = await Mosquitto.start({ extra: [...lines, "require_certificate true"] });
    const mqtt = { url: `mqtts://localhost:${broker.port}`, tls: { ca: authority.ca, ...gateway } };
    await using site = await aSite({ over: { mqtt } });
    await using daemon = await site.run();

    // Everything anew, down to the authority: neither side believes the other with what it had before.
    using other = new Authority();
    for (const [name, { cert, key }] of Object.entries({ broker: server, gateway })) {
      const fresh = other.issue(name);
      copyFileSync(fresh.cert, cert);
      copyFileSync(fresh.key, key);
    }
    copyFileSync(other.ca, authority.ca);
    daemon.signal("SIGHUP");
    await waitFor(() => told(daemon, "the next connection to the broker uses it").length === 2);
    expect(await daemon.hasBroker()).toBe(true);
    await broker.kill();
    await broker.start();
    await waitFor(() => told(daemon, "broker connected").length === 2, { timeoutMs: 30_000 });
  });

  test("a configuration file that is broken by now is logged with each mistake, and the daemon goes on", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    writeFileSync(site.config, readFileSync(site.config, "utf8").replace(/^chargers:/m, "chargerz:"));
    daemon.signal("SIGHUP");
    const { level } = await waitFor(() => daemon.line("chargerz: found an unknown key"));
    expect(level).toBe(40);
    expect((await daemon.get("/readyz")).status).toBe(200);
  });

  test("without certificates it reports so, and the daemon goes on", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    daemon.signal("SIGHUP");
    await waitFor(() => daemon.line("SIGHUP: no certificate is configured"));
    expect((await daemon.get("/readyz")).status).toBe(200);
    expect(await daemon.end("SIGTERM")).toBe(0);
  });
});

/** The connection of a client that does not send anything. `serial`: of the certificate of the listener. */
async function aConnection(url: string, own: ConnectionOptions) {
  const socket = connect({ ...own, host: "localhost", port: Number(new URL(url).port) });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return { socket, serial: socket.getPeerCertificate().serialNumber };
}

/** Puts the state of a site into this cluster, and serves its webhook with this certificate. */
function configureOn(
  cluster: Postgres,
  site: Awaited<ReturnType<typeof aSite>>,
  tls: ReturnType<Authority["issue"]>,
  more: { readonly lease?: string } = {},
): void {
  writeFileSync(join(site.directory, "database-url"), cluster.url, { mode: 0o600 });
  site.configure({
    state: { folder: "./state", postgres: { url: { file: "database-url" }, ...more } },
    webhook: { listen: "127.0.0.1:0", auth: "none", tls },
  });
}

test.skipIf(!mosquittoAvailable || postgresMissing() !== null)(
  "a stand-in serves a renewed certificate after SIGHUP",
  async () => {
    using authority = new Authority();
    const tls = authority.issue("gateway", 20);
    await using cluster = await Postgres.start();
    await using site = await aSite();
    configureOn(cluster, site, tls);
    await using leader = await site.run();
    await using standIn = await site.standIn("second");
    const before = await aConnection(standIn.webhookUrl, { ca: authority.caText });
    authority.issue("gateway", 90);
    standIn.signal("SIGHUP");
    await waitFor(() => told(standIn, "was read again").length === 1);
    const after = await aConnection(standIn.webhookUrl, { ca: authority.caText });
    expect(after.serial).not.toBe(before.serial);
    expect(before.socket.readyState).toBe("open");
    expect(told(leader, "was read again")).toEqual([]);
    expect(await standIn.end("SIGTERM")).toBe(0);
  },
);

test.skipIf(!mosquittoAvailable || postgresMissing() !== null)(
  "a SIGHUP that comes while a process waits for its database is served once it leads",
  async () => {
    using authority = new Authority();
    const tls = authority.issue("gateway", 20);
    await using cluster = await Postgres.start();
    await using site = await aSite();
    configureOn(cluster, site, tls, { lease: "3s" });
    await cluster.stop("fast");
    const waits = "it is tried again until the database answers";
    await using daemon = await Daemon.start(site.config, WEBHOOK_SECRET, {}, [], undefined, waits);
    authority.issue("gateway", 90);
    daemon.signal("SIGHUP");
    await cluster.start();
    await waitFor(() => daemon.line("setpointd is up"));
    await waitFor(() => told(daemon, "was read again").length === 1);
    const { serial } = await aConnection(daemon.webhookUrl, { ca: authority.caText });
    expect(serial).toBe(new X509Certificate(readFileSync(tls.cert)).serialNumber);
    expect(await daemon.end("SIGTERM")).toBe(0);
  },
);

describe.skipIf(!mosquittoAvailable || postgresMissing() !== null)("SIGHUP to a process of a fleet", () => {
  test("renewed certificates are served by both listeners, open connections continue, and each site has it on record", async () => {
    using authority = new Authority();
    const [webhook, operator] = [authority.issue("webhook", 20), authority.issue("operator", 20)];
    const fleet = await aFleet();
    expect((await fleet.put(siteFile("north"))).stderr).toBe("");
    const config = fleet.configure("secure", {
      webhook: { listen: "127.0.0.1:0", auth: "none", tls: { ...webhook, clientCa: authority.ca } },
      operator: { listen: "127.0.0.1:0", tls: operator },
    });
    const worker = await fleet.start(config);
    await waitFor(() => worker.line("this process leads sites"));
    const client = authority.issue("client");
    const own = { ca: authority.caText, cert: readFileSync(client.cert), key: readFileSync(client.key) };
    const open = () =>
      Promise.all([worker.webhookUrl, worker.operatorUrl].map((url) => aConnection(url, own)));
    const before = await open();
    authority.issue("webhook", 90);
    authority.issue("operator", 90);
    const reads = () =>
      worker.lines
        .filter(({ msg }) => msg.includes("was read again"))
        .map(({ site, msg }) => `${String(site)} ${msg.split(" ")[1]}`)
        .toSorted();
    worker.signal("SIGHUP");
    const names = ["operator.tls.cert", "webhook.tls.cert", "webhook.tls.clientCa"];
    await waitFor(() => reads().length === 6);
    expect(reads()).toEqual(["north", "undefined"].flatMap((site) => names.map((name) => `${site} ${name}`)));
    const after = await open();
    for (const [index, { serial, socket }] of before.entries()) {
      expect(after[index]?.serial).not.toBe(serial);
      expect(socket.readyState).toBe("open");
    }

    writeFileSync(webhook.cert, "-----BEGIN CERTIFICATE-----\nhalf of it");
    worker.signal("SIGHUP");
    const broken = await waitFor(() => worker.line("certificate webhook.tls.cert was not replaced"));
    expect(broken.level).toBe(50);
    expect((await open()).map(({ serial }) => serial)).toEqual(after.map(({ serial }) => serial));
    expect(await worker.end("SIGTERM")).toBe(0);
  });

  test("without certificates the process logs that once, and continues", async () => {
    const fleet = await aFleet();
    expect((await fleet.put(siteFile("north"))).stderr).toBe("");
    const worker = await fleet.start(fleet.config);
    await waitFor(() => worker.line("this process leads sites"));
    worker.signal("SIGHUP");
    await waitFor(() => worker.line("SIGHUP: no certificate is configured"));
    expect((await worker.get("/readyz")).status).toBe(200);
    expect(told(worker, "SIGHUP")).toHaveLength(1);
    expect(await worker.end("SIGTERM")).toBe(0);
  });
});

describe.skipIf(!mosquittoAvailable)("the configuration file while the daemon runs", () => {
  test("an edited file is shown with the paths that differ and without values, and one that would not start with its mistakes", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const seen = () => daemon.view<object>("/api/v1/configuration");
    expect(await seen()).toMatchObject({ file: site.config, state: "same", paths: [], mistakes: [] });
    site.configure({ site: { id: "depot", timezone: "Europe/Oslo" }, alarms: {} });
    expect(await seen()).toMatchObject({ state: "differs", paths: ["site.timezone", "alarms"] });
    site.configure({ site: { id: "depot", timezone: "Mars/Olympus" } });
    expect(await seen()).toMatchObject({
      state: "broken",
      paths: ["site.timezone"],
      mistakes: [{ path: "site.timezone", line: 3 }],
    });
    rmSync(site.config);
    expect(await seen()).toMatchObject({ state: "unreadable", paths: null });
    site.configure();
    expect(await seen()).toMatchObject({ state: "same" });
  });
});
