import { describe, expect, test } from "vitest";

import { aSite, anEvent, startOf, WEBHOOK_SECRET } from "../support/aSite.ts";
import { ask, signature } from "../support/aDaemon.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

interface EventView {
  readonly id: string;
  readonly state: string;
}

describe.skipIf(!mosquittoAvailable)("the webhook, with a real daemon and a real broker", () => {
  test("each vehicle starts at its own derived moment, is released at its own end, and duplicates change nothing (F50)", async () => {
    await using site = await aSite({ pollEvery: "1s" });
    await using daemon = await site.run();
    const spread = 3 * SECOND;
    const event = anEvent("EV-7731", {
      startIn: SECOND,
      randomizeStartMs: spread,
      lastsMs: 3 * SECOND,
      vehicles: ["veh-1", "veh-2", "veh-3"],
    });

    const answer = await daemon.deliver(event);
    // Listed only now: a list that is asked for each second might have been first.
    site.partner.put(event);
    expect([answer.status, answer.text]).toEqual([202, '{"accepted":1,"repeats":0,"rejected":0}']);
    const again = await daemon.deliver(event);
    expect([again.status, again.json]).toEqual([202, { accepted: 0, repeats: 1, rejected: 0 }]);

    for (const number of [1, 2, 3]) {
      const vehicle = `veh-${number}`;
      const from = startOf(event) + site.offset(event, vehicle, spread);
      const until = from + 3 * SECOND;
      const start = await site.floor.nth(`bay-0${number}`, 1);
      const { epoch, seq } = start.set;
      expect(start.topic).toBe(`setpointd/depot/chargers/bay-0${number}/set`);
      expect([start.qos, start.retain]).toEqual([1, false]);
      expect(start.set).toStrictEqual({
        v: 1,
        id: `${epoch}-${seq}`,
        epoch,
        seq,
        kind: "current",
        value: 16,
        unit: "A",
        until: new Date(until).toISOString(),
        lease: 180,
        vehicle,
        event: "EV-7731",
      });
      expect(Number.isInteger(epoch) && Number.isInteger(seq)).toBe(true);
      expect(start.at).toBeGreaterThanOrEqual(from);
      expect(start.at).toBeLessThan(from + SECOND);

      const end = await site.floor.nth(`bay-0${number}`, 2);
      expect([end.qos, end.retain]).toEqual([1, false]);
      expect(end.set).toStrictEqual({
        ...start.set,
        id: `${epoch}-${end.set.seq}`,
        seq: end.set.seq,
        kind: "release",
        value: null,
        unit: null,
        until: null,
      });
      expect(end.set.seq).toBeGreaterThan(seq);
      expect(end.at).toBeGreaterThanOrEqual(until);
      expect(end.at).toBeLessThan(until + SECOND);
    }
    // Several lists have held the event meanwhile.
    expect(site.partner.faults.requests.list).toBeGreaterThan(3);
    for (const number of [1, 2, 3])
      expect(site.floor.told(`bay-0${number}`)).toEqual(["16 A EV-7731", "release EV-7731"]);
    expect(site.floor.told("bay-04")).toEqual([]);
  });

  test("a wrong, missing or foreign signature is refused and nothing is believed (F69)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const event = anEvent("EV-forged", { lastsMs: 60 * SECOND });
    const body = JSON.stringify(event);
    const refusals = await Promise.all([
      daemon.deliver(body, { "x-payload-signature": Buffer.alloc(32).toString("base64") }),
      daemon.deliver(body, { "x-payload-signature": "" }),
      daemon.deliver(body, {}),
      daemon.deliver(`${body} `, { "x-payload-signature": "AAAA" }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    expect(new Set(refusals.map(({ text }) => text)).size).toBe(1);
    expect(await daemon.view("/api/v1/events")).toEqual([]);
    expect(await daemon.view("/api/v1/audit?event=EV-forged")).toEqual([]);

    // The same bytes with the right signature: it was the signature that was wrong.
    expect((await daemon.deliver(body)).json).toEqual({ accepted: 1, repeats: 0, rejected: 0 });
    expect((await site.floor.nth("bay-01", 1)).set.event).toBe("EV-forged");
  });

  test("a delivery that was captured and is sent again later is refused, and the reason is shown here", async () => {
    const secret = { file: "webhook-secret" };
    const timestamp = { header: "X-Sent-At", tolerance: "2s" };
    await using site = await aSite({
      over: { webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret, timestamp } } } },
    });
    await using daemon = await site.run();
    const body = JSON.stringify(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    const sentAt = String(Date.now());
    const captured = {
      "x-sent-at": sentAt,
      "x-payload-signature": signature(`${sentAt}.${body}`, WEBHOOK_SECRET),
    };
    expect((await daemon.deliver(body, captured)).json).toEqual({ accepted: 1, repeats: 0, rejected: 0 });
    await site.floor.nth("bay-01", 1);
    expect((await daemon.deliver(body, { ...captured, "x-sent-at": String(Date.now() + 1) })).status).toBe(
      401,
    );
    // The signature of the body alone is no longer enough.
    expect((await daemon.deliver(body)).status).toBe(401);
    const replayed = await waitFor(async () => {
      const answer = await daemon.deliver(body, captured);
      return answer.status === 401 ? answer : undefined;
    });
    expect(replayed.json).toEqual({ error: "unauthorized" });
    const { webhook } = await daemon.view<{
      webhook: { refused: Record<string, { count: number; explanation: string }> };
    }>("/api/v1/status");
    expect(webhook.refused).toMatchObject({
      signatureDiffers: { count: 1, explanation: expect.stringContaining("the header X-Sent-At") },
      headerMissing: { count: 1, explanation: "the header X-Sent-At is missing" },
      timestamp: { count: 1, explanation: expect.stringContaining("tolerance is 2 s") },
    });
    expect(site.floor.told("bay-01")).toEqual(["16 A EV-1"]);
  });

  test("a body that is no JSON, too big or of another type is refused with its own status (F37, F62)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    expect((await daemon.deliver('{"ID": "EV-1"')).status).toBe(400);
    expect((await daemon.deliver(`${"[".repeat(40)}${"]".repeat(40)}`)).status).toBe(400);
    expect((await daemon.deliver(JSON.stringify("x".repeat(1_100_000)))).status).toBe(413);
    expect((await daemon.deliver("ID=EV-1", { "content-type": "text/plain" })).status).toBe(415);
    expect(await daemon.view("/api/v1/events")).toEqual([]);
  });

  test("a single bad event in a list is set aside and its neighbours act (F39)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const good = anEvent("EV-good", { lastsMs: 30 * SECOND });
    const bad = { ...anEvent("EV-bad", { lastsMs: 30 * SECOND, vehicles: ["veh-3"] }) };
    const broken = { ...bad, intervalPeriod: { ...bad.intervalPeriod, duration: "-00:00:30" } };
    const other = anEvent("EV-other", { lastsMs: 30 * SECOND, vehicles: ["veh-2"], kilowatts: 11 });
    const answer = await daemon.deliver([good, broken, other]);
    expect([answer.status, answer.json]).toEqual([202, { accepted: 2, repeats: 0, rejected: 1 }]);

    await site.floor.nth("bay-01", 1);
    const { set } = await site.floor.nth("bay-02", 1);
    expect([set.kind, set.value, set.unit]).toEqual(["power", 11_000, "W"]);
    const { quarantine } = await daemon.view<{ quarantine: { event: string; path: string }[] }>(
      "/api/v1/status",
    );
    expect(quarantine.map(({ event, path }) => [event, path])).toEqual([
      ["EV-bad", "[1].intervalPeriod.duration"],
    ]);
    expect((await daemon.deliver([broken])).json).toEqual({ accepted: 0, repeats: 0, rejected: 1 });
    expect(site.floor.told("bay-03")).toEqual([]);
  });

  test("a DELETE notification withdraws an event in the middle, and an old copy does not revive it (F53)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const event = site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await daemon.deliver(event);
    await site.floor.nth("bay-01", 1);
    site.partner.withdraw("EV-1");
    const answer = await daemon.deliver({ objectType: "EVENT", operation: "DELETE", object: event });
    expect([answer.status, answer.json]).toEqual([202, { accepted: 1, repeats: 0, rejected: 0 }]);
    const { set } = await site.floor.nth("bay-01", 2);
    expect([set.kind, set.until, set.event]).toEqual(["release", null, "EV-1"]);

    expect((await daemon.deliver(event)).json).toEqual({ accepted: 0, repeats: 1, rejected: 0 });
    const [known] = await daemon.view<EventView[]>("/api/v1/events");
    expect(known).toMatchObject({ id: "EV-1", state: "withdrawn" });
    expect(site.floor.told("bay-01")).toEqual(["16 A EV-1", "release EV-1"]);
  });

  test("a delivery that is only an id has that event fetched and acted on", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await waitFor(() => site.partner.faults.requests.list === 1);
    site.partner.put(anEvent("EV-5", { lastsMs: 30 * SECOND, amperes: 10 }));
    site.partner.put(anEvent("EV-6", { lastsMs: 30 * SECOND, amperes: 12, vehicles: ["veh-2"] }));
    const answer = await daemon.deliver({ id: "EV-5" });
    expect([answer.status, answer.json]).toEqual([202, { accepted: 0, repeats: 0, rejected: 0 }]);
    await daemon.deliver({ objectType: "EVENT", operation: "UPDATE", id: "EV-6" });
    await site.floor.nth("bay-01", 1);
    await site.floor.nth("bay-02", 1);
    expect(site.partner.faults.requests).toMatchObject({ list: 1, event: 2 });
    expect([site.floor.told("bay-01"), site.floor.told("bay-02")]).toEqual([["10 A EV-5"], ["12 A EV-6"]]);
  });

  test("JSON without a known part is accepted, and the list is polled", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await waitFor(() => site.partner.faults.requests.list === 1);
    site.partner.put(anEvent("EV-8", { lastsMs: 30 * SECOND }));
    const answer = await daemon.deliver({ hello: "there" });
    expect([answer.status, answer.json]).toEqual([202, { accepted: 0, repeats: 0, rejected: 0 }]);
    expect((await site.floor.nth("bay-01", 1)).set.event).toBe("EV-8");
  });

  test("the registration's echo is answered in plain text, and only plain text is echoed", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const echo = await ask(`${daemon.webhookUrl}?echo=a1_B-2`, { method: "GET" });
    expect([echo.status, echo.text]).toEqual([200, "a1_B-2"]);
    expect(echo.type).toMatch(/^text\/plain/);
    const script = await ask(`${daemon.webhookUrl}?echo=%3Cscript%3E`, { method: "GET" });
    expect(script.status).toBe(400);
    expect(script.text).not.toContain("script");
    expect((await ask(`${daemon.webhookUrl}?echo=${"x".repeat(257)}`, { method: "GET" })).status).toBe(400);
  });
});
