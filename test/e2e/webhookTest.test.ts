import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Sections, type Site, WEBHOOK_SECRET } from "../support/aSite.ts";
import { Authority } from "../support/certificates.ts";
import { freePort } from "../support/freePort.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";

const SECRET = { secret: { file: "webhook-secret" } };
const KEY = Buffer.alloc(32, 5).toString("base64");

const webhookTest = (site: Site, ...args: readonly string[]) =>
  setpointd(["webhook", "test", "-c", site.config, ...args]);

/** With a port that is known beforehand, as on a gateway. */
async function aReachableSite(webhook: Sections): Promise<Site> {
  const listen = `127.0.0.1:${await freePort()}`;
  return aSite({ over: { webhook: { listen, ...webhook } } });
}

describe.skipIf(!mosquittoAvailable)("setpointd webhook test", () => {
  test.each([
    ["hmac", { hmac: { ...SECRET, encoding: "hex", algorithm: "sha512" } }],
    ["standardWebhooks", { standardWebhooks: SECRET }],
    ["bearer", { bearer: SECRET }],
  ])("posts a harmless event with %s, and shows status, body and what is on record", async (_, auth) => {
    await using site = await aReachableSite({ auth });
    writeFileSync(join(site.directory, "webhook-secret"), "standardWebhooks" in auth ? KEY : WEBHOOK_SECRET);
    await using daemon = await site.run();
    const { code, stdout, stderr } = await webhookTest(site);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`POST ${new URL("/webhooks/events", daemon.webhookUrl).href}, `);
    expect(stdout).toMatch(/^event SETPOINTD-TEST-\w{8}: ended 59 minutes ago and is for no vehicle/m);
    expect(stdout).toContain('202 {"accepted":1,"repeats":0,"rejected":0}\n');
    expect(stdout).toMatch(/^\d\d:\d\d:\d\d {2}event SETPOINTD-TEST-\w{8} "a test of the webhook" is new/m);
    const { problems } = await daemon.view<{ problems: object[] }>("/api/v1/status");
    expect(problems.filter((one) => JSON.stringify(one).includes("SETPOINTD-TEST"))).toEqual([]);
    expect(site.floor.told("bay-01")).toEqual([]);
  });

  test("posts over TLS although the certificate is for another name", async () => {
    using authority = new Authority();
    const { cert, key } = authority.issue("depot.example");
    // The certificate is good for 127.0.0.1 only.
    const listen = `127.0.0.2:${await freePort()}`;
    await using site = await aReachableSite({ listen, tls: { cert, key }, auth: { hmac: SECRET } });
    await using _daemon = await site.run();
    const { code, stdout } = await webhookTest(site);
    expect(stdout).toContain(`POST https://${listen}/`);
    expect(code).toBe(0);
  });

  test("a given event is acted on; an unreadable one is reported with its path", async () => {
    await using site = await aReachableSite({ auth: { hmac: SECRET } });
    await using _daemon = await site.run();
    const good = anEvent("EV-mine", { lastsMs: 60_000 });
    const bad = { ...anEvent("EV-bad", { lastsMs: 60_000 }), payload: { payloadType: "CurrentLevel" } };
    const file = join(site.directory, "event.json");
    writeFileSync(file, JSON.stringify([good, bad]));
    const { code, stdout, stderr } = await webhookTest(site, "--event", file);
    expect(stdout).toContain(`${file}, byte for byte: the daemon acts on it`);
    expect(stdout).toContain('202 {"accepted":1,"repeats":0,"rejected":1}');
    expect(stdout).toContain('event EV-mine "EV-mine" is new');
    expect(stdout).toContain("event EV-bad in a webhook was set aside: [1].payload.targetCurrent: missing");
    expect([code, stderr]).toEqual([1, ""]);
    expect((await site.floor.nth("bay-01", 1)).set.event).toBe("EV-mine");

    writeFileSync(file, JSON.stringify(good));
    const again = await webhookTest(site, "--event", file);
    expect(again.stdout).toContain("EV-mine: nothing new, this revision was known already");
    expect(again.code).toBe(0);
  });

  test("a 401 comes with the daemon's own reason", async () => {
    await using site = await aReachableSite({ auth: { hmac: SECRET } });
    await using daemon = await site.run();
    const listen = new URL(daemon.webhookUrl).host;
    site.configure({ webhook: { listen, auth: { hmac: { ...SECRET, encoding: "hex" } } } });
    const { code, stdout, stderr } = await webhookTest(site);
    expect(stdout).toContain("401 ");
    expect(stderr).toContain("the daemon's reason: the header X-Payload-Signature holds hex, but");
    expect(stderr).toContain("was it restarted since webhook.auth or its secret was changed?");
    expect(code).toBe(1);
  });

  test("an absent listener and a foreign one are distinguished from a refusal", async () => {
    await using site = await aReachableSite({ auth: { hmac: SECRET } });
    const absent = await webhookTest(site);
    expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining("ECONNREFUSED")]);
    expect(absent.stderr).toContain("is setpointd running?");

    const stranger = createServer((_request, response) => response.writeHead(404).end("not here"));
    await new Promise<void>((up) => stranger.listen(0, "127.0.0.1", up));
    const { port } = stranger.address() as AddressInfo;
    site.configure({ webhook: { listen: `127.0.0.1:${port}`, auth: { hmac: SECRET } } });
    const foreign = await webhookTest(site);
    stranger.close();
    expect([foreign.code, foreign.stderr]).toEqual([
      1,
      expect.stringContaining("another program listens there"),
    ]);
  });

  test("without authentication it reports that a delivery is only a hint, without a listener that there is none", async () => {
    await using site = await aReachableSite({});
    await using _daemon = await site.run();
    const hint = await webhookTest(site);
    expect(hint.stdout).toContain("without webhook.auth the daemon does not act on a body");
    expect([hint.code, hint.stderr]).toEqual([0, ""]);

    site.configure({ webhook: null });
    expect(await webhookTest(site)).toEqual({
      code: 2,
      stdout: "",
      stderr: "nothing to test: there is no section webhook: events come by polling only\n",
    });
  });
});
