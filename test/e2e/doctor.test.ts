import { describe, expect, test } from "vitest";

import type { Diagnosis } from "../../src/cli/commands/doctor.ts";
import { Authority } from "../support/certificates.ts";
import { aSite, type Site } from "../support/aSite.ts";
import { freePort } from "../support/freePort.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";

const MINUTE = 60_000;

/** Native chargers that send telemetry each second until they are disposed of. */
function talking({ floor }: Site, ...bays: readonly string[]): Disposable {
  const timer = setInterval(() => {
    for (const bay of bays) {
      const telemetry = JSON.stringify({ at: new Date().toISOString(), state: "connected", powerW: 0 });
      floor.publish(`setpointd/depot/chargers/${bay}/telemetry`, telemetry).catch(() => undefined);
    }
  }, 1000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

const BAYS = ["bay-01", "bay-02", "bay-03", "bay-04"];

async function doctor(site: Site): Promise<{ readonly code: number | null; readonly diagnosis: Diagnosis }> {
  const { code, stdout } = await setpointd(["doctor", "-c", site.config, "--json"]);
  return { code, diagnosis: JSON.parse(stdout) as Diagnosis };
}

describe.skipIf(!mosquittoAvailable)("setpointd doctor", () => {
  test(
    "a healthy site has nothing wrong, and the running daemon is not disturbed",
    async () => {
      await using site = await aSite();
      using _bays = talking(site, ...BAYS);
      await using daemon = await site.run();
      const { code, diagnosis } = await doctor(site);
      expect(diagnosis.steps.filter(({ result }) => result === "wrong")).toEqual([]);
      expect([code, diagnosis.ok, diagnosis.site]).toEqual([0, true, "depot"]);
      const areas = new Set(diagnosis.steps.map(({ area }) => area));
      for (const area of [
        "daemon",
        "partner",
        "webhook",
        "brokers",
        "chargers",
        "clock",
        "disk",
        "certificates",
      ])
        expect([...areas]).toContain(area);
      for (const bay of BAYS)
        expect(diagnosis.steps).toContainEqual(expect.objectContaining({ name: bay, result: "ok" }));
      for (const { how, found } of diagnosis.steps)
        expect([how, found].every((text) => text !== "")).toBe(true);
      expect(daemon.lines.filter(({ msg }) => msg === "broker connected")).toHaveLength(1);
      expect(daemon.lines.filter(({ msg }) => /broker (un|connection)|another client/.test(msg))).toEqual([]);
      expect(site.floor.commands.map(({ text }) => text).every((text) => text === '{"v":0}')).toBe(true);
    },
    2 * MINUTE,
  );

  test(
    "the problems of the running daemon are among the findings, and so is a configuration that it has not read",
    async () => {
      await using site = await aSite();
      using _bays = talking(site, ...BAYS);
      await using _daemon = await site.run();
      await site.floor.publish("setpointd/depot/chargers/bay-02/online", "false", true);
      const zoned = { site: { id: "depot", timezone: "Asia/Tokyo" } };
      site.configure({ control: { mode: "observe" }, ...zoned });
      const { code, stdout } = await setpointd(["doctor", "-c", site.config]);
      expect(code).toBe(1);
      expect(stdout).toMatch(
        /^WRONG {4}daemon, offline bay-02: .*\n {9}known from: the status of the running daemon\n {9}remedy: /m,
      );
      expect(stdout).toContain(
        "WRONG    daemon, configuration: the daemon runs in mode drive, and the configuration has mode observe\n",
      );
      expect(stdout).toMatch(/, up since [\d -]*\d\d:\d\d:\d\d \(times in Asia\/Tokyo\), 1 problem /);
      expect(stdout).toMatch(/^ok {7}daemon, control socket: /m);
      expect(stdout).toMatch(/^2 steps are wrong, \d+ ok, \d+ skipped$/m);
    },
    2 * MINUTE,
  );

  test(
    "without a daemon, with a dead partner and a certificate that ends, each step names its remedy",
    async () => {
      using authority = new Authority();
      const { cert, key } = authority.issue("gateway", 5);
      await using site = await aSite();
      using _bays = talking(site, ...BAYS);
      const baseUrl = `http://127.0.0.1:${await freePort()}`;
      const clientSecret = { file: "client-secret" };
      site.configure({
        vtn: { baseUrl, tokenUrl: `${baseUrl}/token`, clientId: "depot", clientSecret },
        webhook: {
          listen: "127.0.0.1:0",
          tls: { cert, key },
          auth: { hmac: { secret: { file: "webhook-secret" } } },
        },
      });
      const { code, diagnosis } = await doctor(site);
      expect(code).toBe(1);
      const wrong = diagnosis.steps.filter(({ result }) => result === "wrong");
      expect(wrong.map(({ area, name }) => `${area} ${name}`)).toEqual([
        "daemon control socket",
        "certificates webhook.tls.cert",
        "partner vtn.tokenUrl port",
        "partner token",
      ]);
      expect(diagnosis.counts.wrong).toBe(4);
      for (const { remedy } of wrong) expect(remedy).not.toBeNull();
      expect(site.floor.on("gateway/online")).toEqual([]);
    },
    2 * MINUTE,
  );

  test("a configuration with mistakes is explained, with exit code 2", async () => {
    await using site = await aSite();
    site.configure({ mqtt: { url: "http://broker" } });
    const { code, stderr } = await setpointd(["doctor", "-c", site.config]);
    expect(code).toBe(2);
    expect(stderr).toContain("mqtt.url");
  });
});
