import { execFileSync } from "node:child_process";
import { globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Sections, type Site, WEBHOOK_SECRET } from "../support/aSite.ts";
import { Authority } from "../support/certificates.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const MQTT_PASSWORD = "planted-mqtt-password";
const ENV = { MQTT_PASSWORD, OTHER_API_TOKEN: "planted-variable-token" };

/** Every file of the archive, by name. */
function unpacked(archive: string): ReadonlyMap<string, string> {
  const names = execFileSync("tar", ["-tzf", archive], { encoding: "utf8" }).trim().split("\n");
  const read = (name: string): string =>
    execFileSync("tar", ["-xzOf", archive, name], { encoding: "utf8", maxBuffer: 1e8 });
  return new Map(
    names
      .filter((name) => !name.endsWith("/"))
      .map((name) => [name.replace("setpointd-bundle/", ""), read(name)]),
  );
}

const encodings = ["utf8", "base64", "base64url", "hex"] as const;

function expectNoSecret(files: ReadonlyMap<string, string>, secrets: readonly Buffer[]): void {
  for (const [name, text] of files) {
    expect([name, /planted[-_]\w*/.exec(text)?.[0]]).toEqual([name, undefined]);
    expect([name, text.includes("PRIVATE KEY")]).toEqual([name, false]);
    for (const secret of secrets)
      for (const encoding of encodings)
        expect([name, encoding, text.includes(secret.toString(encoding))]).toEqual([name, encoding, false]);
  }
}

/** A log as a careless program would write it. */
const careless = (key: string): string =>
  [
    `{"level":30,"time":${Date.now()},"msg":"access token received","access_token":"planted-access-token"}`,
    "Authorization: Bearer planted-bearer-token",
    `connecting with ${Buffer.from(MQTT_PASSWORD).toString("base64")} and ${MQTT_PASSWORD}`,
    "mqtt://depot:planted-userinfo@broker:1883",
    "open http://gateway/login?once=planted-once within one hour",
    `token setpointd_planted-${"aB3_".repeat(9)}`.slice(0, 59),
    `signature=${WEBHOOK_SECRET}`,
    readFileSync(key, "utf8"),
    "the last line",
  ].join("\n");

const sectionsOf = (site: Site, cert: string, key: string): Sections => ({
  mqtt: { url: site.broker.url, username: "depot", password: { env: "MQTT_PASSWORD" } },
  webhook: {
    listen: "127.0.0.1:0",
    tls: { cert, key },
    auth: { hmac: { secret: { file: "webhook-secret" } } },
  },
});

/** Chargers that send telemetry until they are disposed of: doctor waits for each. */
function talking({ floor }: Site): Disposable {
  const timer = setInterval(() => {
    for (const bay of ["bay-01", "bay-02", "bay-03", "bay-04"]) {
      const telemetry = JSON.stringify({ at: new Date().toISOString(), state: "connected", powerW: 0 });
      floor.publish(`setpointd/depot/chargers/${bay}/telemetry`, telemetry).catch(() => undefined);
    }
  }, 1000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function aPlantedSite(authority: Authority): Promise<Site & { readonly key: string }> {
  const { cert, key } = authority.issue("gateway", 60);
  const site = await aSite();
  site.configure(sectionsOf(site, cert, key));
  return Object.assign(site, { key });
}

/** Keys and secrets of the site. */
const secretsOf = (site: Site): readonly Buffer[] => [
  ...globSync(`${site.state}/{site,proof}.key`).map((path) => readFileSync(path)),
  Buffer.from(readFileSync(join(site.directory, "client-secret"), "utf8").trim()),
  Buffer.from(WEBHOOK_SECRET),
  Buffer.from(MQTT_PASSWORD),
];

describe.skipIf(!mosquittoAvailable)("setpointd bundle", () => {
  test(
    "the archive of a running site has all parts and none of the secrets that were planted everywhere, also when the page saves it",
    async () => {
      using authority = new Authority();
      await using site = await aPlantedSite(authority);
      using _bays = talking(site);
      writeFileSync(site.config, `${readFileSync(site.config, "utf8")}# planted-comment\n`);
      const add = ["token", "add", "wall", "--role", "viewer", "-c", site.config];
      const token = /setpointd_[\w-]{43}/.exec((await setpointd(add, { env: ENV })).stdout)?.[0] ?? "";
      expect(token).not.toBe("");
      await using daemon = await site.run(ENV);
      site.partner.put(anEvent("EV-1", { lastsMs: MINUTE }));
      await setpointd(["poll", "-c", site.config], { env: ENV });
      const hold = ["hold", "bay-01", "--exempt", "--until", "events", "-c", site.config];
      const reason = `password: planted-reason ${MQTT_PASSWORD} ${token}`;
      await setpointd([...hold, "--reason", reason], { env: ENV });
      await waitFor(() => daemon.lines.some(({ msg }) => /hold/i.test(msg)));
      const log = join(site.directory, "daemon.log");
      const lines = daemon.lines.map((line) => JSON.stringify(line));
      writeFileSync(log, `${lines.join("\n")}\n${careless(site.key)}`);

      const archive = join(site.directory, "support.tar.gz");
      const verb = ["bundle", archive, "--log", log, "-c", site.config];
      const { code, stdout, stderr } = await setpointd(verb, { env: ENV });
      expect([code, stderr]).toEqual([0, ""]);
      expect(statSync(archive).mode & 0o777).toBe(0o600);
      const files = unpacked(archive);
      expect([...files.keys()]).toEqual([
        "CONTENTS.txt",
        "alarms.json",
        "configuration.yaml",
        "doctor.json",
        "log.txt",
        "metrics.txt",
        "profiles.json",
        "record.jsonl",
        "statistics.json",
        "status.json",
        "versions.json",
      ]);
      for (const name of files.keys()) if (name !== "CONTENTS.txt") expect(stdout).toContain(`  ${name}: `);
      expectNoSecret(files, [...secretsOf(site), Buffer.from(token)]);
      expect(files.get("record.jsonl")).toContain("EV-1");
      expect(files.get("record.jsonl")).toContain("[removed]");
      expect(files.get("metrics.txt")).toMatch(/^setpointd_broker_up 1$/m);
      expect(files.get("log.txt")).toContain("the last line");
      for (const name of ["status.json", "doctor.json", "alarms.json", "statistics.json", "versions.json"])
        expect(() => JSON.parse(files.get(name) ?? "") as unknown).not.toThrow();
      for (const line of (files.get("record.jsonl") ?? "").trim().split("\n"))
        expect(() => JSON.parse(line) as unknown).not.toThrow();

      const again = await setpointd(verb, { env: ENV });
      expect([again.code, again.stderr]).toEqual([1, `${archive} exists already: name another file\n`]);

      // The page hands out the same archive, without a shell on the gateway. The journal has no log of a test.
      const response = await fetch(`${daemon.operatorUrl}/api/v1/bundle`);
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/gzip"]);
      const saved = join(site.directory, "saved.tar.gz");
      writeFileSync(saved, Buffer.from(await response.arrayBuffer()));
      const handed = unpacked(saved);
      expect([...handed.keys()]).toEqual([...files.keys()].filter((name) => name !== "log.txt"));
      expect(handed.get("CONTENTS.txt")).toContain("log.txt: log of the last day. Not there:");
      expectNoSecret(handed, [...secretsOf(site), Buffer.from(token)]);
      await waitFor(async () => {
        const rows = await daemon.view<{ readonly words: string }[]>("/api/v1/audit?kind=operator");
        return rows.some(({ words }) => words === "loopback saved a support archive");
      });
    },
    3 * MINUTE,
  );

  test(
    "without a daemon the stored state is read, and with mistakes in the configuration the rest is still there",
    async () => {
      using authority = new Authority();
      await using site = await aPlantedSite(authority);
      using _bays = talking(site);
      await (await site.run(ENV))[Symbol.asyncDispose]();
      const stopped = join(site.directory, "stopped.tar.gz");
      const first = await setpointd(["bundle", stopped, "-c", site.config], { env: ENV });
      expect(first.code).toBe(0);
      expect(first.stdout).toContain(
        "status.json: status of the running daemon. Not there: setpointd is not running",
      );
      const files = unpacked(stopped);
      expectNoSecret(files, secretsOf(site));
      expect(files.get("record.jsonl")).toContain("setpointd started");
      expect(files.get("statistics.json")).toContain('"epoch"');
      expect(files.get("alarms.json")).toMatch(/^\[/);

      site.configure({ mqtt: { url: site.broker.url, password: "planted-inline", pasword: "planted-typo" } });
      const broken = join(site.directory, "broken.tar.gz");
      const log = join(site.directory, "daemon.log");
      writeFileSync(log, "connecting with planted-typo\n");
      const second = await setpointd(["bundle", broken, "--log", log, "-c", site.config], { env: ENV });
      expect(second.code).toBe(0);
      const rest = unpacked(broken);
      expect([...rest.keys()]).toEqual([
        "CONTENTS.txt",
        "configuration.yaml",
        "log.txt",
        "mistakes.json",
        "versions.json",
      ]);
      expectNoSecret(rest, secretsOf(site));
      expect(rest.get("mistakes.json")).toContain("mqtt.pasword");
    },
    2 * MINUTE,
  );
});
