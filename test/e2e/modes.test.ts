import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { Floor } from "../support/aFloor.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

interface Row {
  readonly kind: string;
  readonly words: string;
}

describe.skipIf(!mosquittoAvailable)("other ways to be configured", () => {
  test("in mode observe everything is decided and explained, and no command is published", async () => {
    await using site = await aSite({ over: { control: { mode: "observe" } } });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: SECOND }));
    const decisions = await waitFor(async () => {
      const rows = await daemon.view<Row[]>("/api/v1/audit?event=EV-1");
      const decided = rows.filter(({ kind }) => kind === "decision");
      return decided.length === 2 ? decided : null;
    });
    expect(decisions[0]?.words).toMatch(/^observing, not sent: bay-01 \(veh-1\) to 16 A until .* event EV-1/);
    expect(decisions[1]?.words).toMatch(/^observing, not sent: bay-01 \(veh-1\) released/);
    await waitFor(() => site.floor.on("bay-01/state").length > 0);
    expect(site.floor.commands).toEqual([]);
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(site.floor.commands).toEqual([]);
  });

  test("a bearer token is as good as a signature, and only that token is", async () => {
    await using site = await aSite({
      over: { webhook: { listen: "127.0.0.1:0", auth: { bearer: { secret: { env: "HOOK_TOKEN" } } } } },
    });
    await using daemon = await site.run({ HOOK_TOKEN: "token-of-the-tests" });
    const event = anEvent("EV-1", { lastsMs: 60 * SECOND });
    for (const authorization of ["Bearer wrong", "Basic token-of-the-tests", "token-of-the-tests"])
      expect((await daemon.deliver(event, { authorization })).status).toBe(401);
    expect((await daemon.deliver(event)).status).toBe(401);
    expect(await daemon.view("/api/v1/events")).toEqual([]);
    const answer = await daemon.deliver(event, { authorization: "Bearer token-of-the-tests" });
    expect([answer.status, answer.json]).toEqual([202, { accepted: 1, repeats: 0, rejected: 0 }]);
    expect((await site.floor.nth("bay-01", 1)).set.event).toBe("EV-1");
  });

  test("without authentication a delivery is a hint: its body is never acted on, and the list is fetched", async () => {
    await using site = await aSite({ over: { webhook: { listen: "127.0.0.1:0" } } });
    await using daemon = await site.run();
    await waitFor(() => site.partner.faults.requests.list === 1);
    const forged = anEvent("EV-forged", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] });
    site.partner.put(anEvent("EV-true", { lastsMs: 60 * SECOND }));
    for (const body of [forged, { objectType: "EVENT", operation: "DELETE", object: { ID: "EV-true" } }]) {
      const answer = await daemon.deliver(body, {});
      expect([answer.status, answer.json]).toEqual([
        202,
        { accepted: 0, repeats: 0, rejected: 0, hint: true },
      ]);
    }
    expect((await site.floor.nth("bay-01", 1, 20_000)).set.event).toBe("EV-true");
    const known = await daemon.view<{ id: string; state: string }[]>("/api/v1/events");
    expect(known.map(({ id, state }) => [id, state])).toEqual([["EV-true", "active"]]);
    expect(site.floor.told("bay-02")).toEqual([]);
    // However many hints: at most one list in ten seconds.
    expect(site.partner.faults.requests.list).toBeLessThanOrEqual(3);
  });

  test("without a webhook polling alone brings events, their changes and their withdrawal (F40)", async () => {
    await using site = await aSite({ pollEvery: "1s", over: { webhook: null } });
    const { partner, floor } = site;
    await using daemon = await site.run();
    expect(() => daemon.webhookUrl).toThrow();
    partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await floor.nth("bay-01", 1);
    partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND, amperes: 10 }));
    await floor.nth("bay-01", 2);
    partner.withdraw("EV-1");
    await floor.nth("bay-01", 3);
    expect(floor.told("bay-01")).toEqual(["16 A EV-1", "10 A EV-1", "release EV-1"]);
    // Two lists that lacked it were not enough: it was asked for by id.
    expect(partner.faults.requests.event).toBe(1);
  });

  test("a broker inside setpointd serves the chargers like any other", async () => {
    await using site = await aSite({ over: { mqtt: { embedded: { listen: "127.0.0.1:0" } } } });
    await using daemon = await site.run();
    const url = `mqtt://127.0.0.1:${daemon.brokerPort}`;
    await using floor = await Floor.at(url, { protocolVersion: 4 });
    await waitFor(() => floor.on("gateway/online").some(({ text }) => text === "true"));
    await daemon.deliver(anEvent("EV-1", { lastsMs: 2 * SECOND }));
    const { set, qos } = await floor.nth("bay-01", 1);
    expect([set.value, set.event, qos]).toEqual([16, "EV-1", 1]);
    await using late = await Floor.at(url, { protocolVersion: 4 });
    await waitFor(() => late.on("gateway/online").length > 0);
    expect(late.commands).toEqual([]);
    expect((await floor.nth("bay-01", 2)).set.kind).toBe("release");
  });
});
