import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { signature } from "../support/aDaemon.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { Floor } from "../support/aFloor.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";
import { aServer, json } from "../vtn/aServer.ts";

const PLANTED = {
  CLIENT_SECRET: "planted-client-secret-7f3a",
  HOOK_SECRET: "planted-webhook-secret-91bd",
  MQTT_PASSWORD: "planted-mqtt-password-c04e",
};
const TOKENS = ["planted-access-token-58aa", "planted-access-token-66bb"];

describe.skipIf(!mosquittoAvailable)("secrets that must never be written down", () => {
  test("no secret, token or signature is in any log at trace, nor in the record, the API or the state", async () => {
    await using site = await aSite();
    await using broker = await Mosquitto.start({ users: { depot: PLANTED.MQTT_PASSWORD } });
    await using floor = await Floor.at(broker.url, {
      protocolVersion: 5,
      username: "depot",
      password: PLANTED.MQTT_PASSWORD,
    });
    const events = [anEvent("EV-listed", { lastsMs: 60_000, vehicles: ["veh-2"] })];
    let issued = 0;
    await using partner = await aServer((response, seen) => {
      if (seen.url === "/connect/token")
        return json({ access_token: TOKENS[issued++ % TOKENS.length], expires_in: 3600 })(response, seen);
      // The first token is refused, as are whole pages that quote what they were sent.
      if (seen.headers.authorization?.endsWith(TOKENS[0] ?? ""))
        return json({ error: `bad ${seen.headers.authorization}` }, 401)(response, seen);
      return json(events)(response, seen);
    });
    site.configure({
      vtn: {
        baseUrl: partner.origin,
        tokenUrl: `${partner.origin}/connect/token`,
        clientId: "depot",
        clientSecret: { env: "CLIENT_SECRET" },
        pollEvery: "1s",
      },
      webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { env: "HOOK_SECRET" } } } },
      mqtt: { url: broker.url, username: "depot", password: { env: "MQTT_PASSWORD" } },
    });
    await using daemon = await site.run({ ...PLANTED, LOG_LEVEL: "trace" });

    const sent: string[] = [];
    const post = (body: string, secret: string, headers: Record<string, string> = {}) => {
      const proof = signature(body, secret);
      sent.push(proof, ...Object.values(headers));
      return daemon.deliver(body, { "x-payload-signature": proof, ...headers });
    };
    const event = JSON.stringify({
      ...anEvent("EV-1", { lastsMs: 60_000 }),
      secretMember: "planted-body-part-2c",
    });
    expect((await post(event, PLANTED.HOOK_SECRET)).status).toBe(202);
    expect((await post(event, "another-secret")).status).toBe(401);
    expect((await post("{", PLANTED.HOOK_SECRET)).status).toBe(400);
    const stranger = { authorization: "Bearer planted-stranger-token-0d" };
    expect((await post(event, "another-secret", stranger)).status).toBe(401);
    for (const charger of ["bay-01", "bay-02"]) await floor.nth(charger, 1);
    await broker.changePasswords({ depot: "something else" });
    await broker.kill();
    await broker.start();
    await waitFor(() => daemon.lines.some(({ level, msg }) => level >= 40 && /broker/.test(msg)), {
      timeoutMs: 10_000,
    });

    const views = ["status", "events", "chargers", "vehicles", "audit"].map(
      async (name) => (await daemon.get(`/api/v1/${name}`)).text,
    );
    const record = await setpointd(["audit", "--json", "-c", site.config], { env: PLANTED });
    const shown = await Promise.all(views);
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(daemon.lines.some(({ msg }) => msg.includes("EV-1"))).toBe(true);
    expect(partner.seen.filter(({ url }) => url === "/connect/token")).toHaveLength(2);
    const kept = readdirSync(site.state).map((name) => readFileSync(join(site.state, name), "latin1"));
    const written = [daemon.output, daemon.errors, ...shown, record.stdout, record.stderr, ...kept];
    const secrets = [...Object.values(PLANTED), ...TOKENS, ...sent];
    for (const secret of secrets) expect(written.filter((text) => text.includes(secret))).toEqual([]);
    for (const text of [daemon.output, ...shown]) expect(text).not.toContain("planted-body-part-2c");
  });
});
