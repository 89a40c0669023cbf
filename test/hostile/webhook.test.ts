import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { Pool } from "undici";

import { aSite, anEvent, startOf } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const KEY = Buffer.from("0123456789abcdef0123456789abcdef").toString("base64");

describe.skipIf(!mosquittoAvailable).concurrent("a webhook that anybody can reach", () => {
  test("F69: Standard Webhooks in every envelope; what is replayed, forged, old or of tomorrow changes nothing", async () => {
    const auth = { standardWebhooks: { secret: { env: "HOOK_SECRET" } } };
    await using site = await aSite({ over: { webhook: { listen: "127.0.0.1:0", auth } } });
    await using daemon = await site.run({ HOOK_SECRET: `whsec_${KEY}` });
    const signer = new Webhook(KEY);
    const send = (content: unknown, id: string, ageSeconds = 0, signed = content) => {
      const at = new Date(Date.now() - ageSeconds * 1000);
      return daemon.deliver(content, {
        "webhook-id": id,
        "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
        "webhook-signature": signer.sign(id, at, JSON.stringify(signed)),
      });
    };
    const events = [1, 2, 3, 4].map((number) =>
      anEvent(`EV-${number}`, { lastsMs: MINUTE, vehicles: [`veh-${number}`] }),
    );
    const envelopes = [
      { event: events[0] },
      { data: events[1] },
      { objectType: "EVENT", operation: "CREATE", object: events[2] },
      { specversion: "1.0", id: "d-4", source: "/vtn", type: "event.created", data: events[3] },
    ];
    for (const [index, envelope] of envelopes.entries()) {
      expect((await send(envelope, `msg_${index}`)).json).toMatchObject({ accepted: 1 });
      await site.floor.nth(`bay-0${index + 1}`, 1);
    }
    const gone = { objectType: "EVENT", operation: "DELETE", object: { ID: "EV-1" } };
    expect((await send(gone, "msg_5")).json).toMatchObject({ accepted: 1 });
    await site.floor.nth("bay-01", 2);

    const known = await daemon.view("/api/v1/events");
    expect((await send(envelopes[0], "msg_0")).json).toEqual({ accepted: 0, repeats: 1, rejected: 0 });
    expect((await send(envelopes[1], "msg_1")).json).toEqual({ accepted: 0, repeats: 1, rejected: 0 });
    for (const age of [302, 86_400, -62, -86_400]) {
      const later = { event: anEvent("EV-2", { lastsMs: MINUTE, vehicles: ["veh-2"], amperes: 8 }) };
      expect((await send(later, `msg_age_${age}`, age)).status).toBe(401);
    }
    expect((await send({ event: anEvent("EV-9", { lastsMs: MINUTE }) }, "msg_9", 0, {})).status).toBe(401);
    expect(await daemon.view("/api/v1/events")).toEqual(known);
    expect(site.floor.commands).toHaveLength(5);
  });

  test("F60: a flood gets 429, the partner gets in, and planned setpoints start in time", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const planned = anEvent("EV-1", { startIn: 2_000, lastsMs: MINUTE });
    await daemon.deliver(planned);
    const url = new URL(daemon.webhookUrl);
    const pool = new Pool(url.origin, { connections: 50 });
    const headers = { "content-type": "application/json", "x-payload-signature": "AAAA" };
    const told = new Map<number | "closed", number>();
    const attacker = async (): Promise<void> => {
      while (site.floor.sets("bay-01").length === 0) {
        const answer = await pool
          .request({ method: "POST", path: url.pathname, headers, body: "{}" })
          .catch(() => null);
        await answer?.body.dump();
        const status = answer?.statusCode ?? "closed";
        told.set(status, (told.get(status) ?? 0) + 1);
      }
    };
    const flood = Promise.all(Array.from({ length: 50 }, attacker));
    const second = anEvent("EV-2", { lastsMs: MINUTE, vehicles: ["veh-2"] });
    expect((await daemon.deliver(second)).json).toMatchObject({ accepted: 1 });
    const first = await site.floor.nth("bay-01", 1);
    await flood;
    await pool.close();
    expect(first.at - startOf(planned)).toBeLessThan(1_000);
    expect(new Set(told.keys())).toEqual(new Set([401, 429, "closed"]));
    expect(told.get("closed")).toBeGreaterThan(500);
    // F12: no line for each of them.
    expect(daemon.lines.filter(({ msg }) => msg === "webhook request refused").length).toBeLessThan(30);
  });

  test("F62 F66: signed bodies made to take long do not delay the health of the daemon, and leave little behind", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const heavy: readonly (readonly [string, number])[] = [
      [`[${"{},".repeat(300_000)}{}]`, 413],
      [`[${'{"ID":"a","payload":1},'.repeat(9_000)}{}]`, 202],
      [
        JSON.stringify({ ...anEvent("EV-1", { lastsMs: MINUTE }), ID: `a${"\u0301\u0323".repeat(200_000)}` }),
        202,
      ],
    ];
    for (const [body, status] of heavy) {
      const began = performance.now();
      expect((await daemon.deliver(body)).status).toBe(status);
      expect(performance.now() - began).toBeLessThan(5_000);
      expect((await daemon.get("/healthz")).status).toBe(200);
    }
    await waitFor(async () => (await daemon.get("/readyz")).status === 200);
    expect(await daemon.view("/api/v1/events")).toEqual([]);
    expect(daemon.output.length).toBeLessThan(10_000_000);
  });
});
