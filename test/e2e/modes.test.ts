import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { Floor } from "../support/aFloor.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

interface Row {
  readonly kind: string;
  readonly words: string;
  readonly facts: object;
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
    expect(decisions.map(({ facts }) => facts)).toMatchObject([{ observed: true }, { observed: true }]);
    await waitFor(() => site.floor.on("bay-01/state").length > 0);
    expect(site.floor.commands).toEqual([]);
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(site.floor.commands).toEqual([]);
  });

  test("the whole site observes by request: what is limited is released once, also over kill -9; drive sends it again", async () => {
    await using site = await aSite();
    const verb = (...args: readonly string[]) => setpointd(["mode", "-c", site.config, ...args]);
    expect(await verb()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("setpointd does not run"),
    });
    {
      await using daemon = await site.run();
      await daemon.deliver(anEvent("EV-1", { lastsMs: 600 * SECOND, amperes: 10 }));
      await site.floor.nth("bay-01", 1);
      expect(await verb()).toMatchObject({ code: 0, stdout: "mode drive\n" });
      expect(await verb("observe")).toMatchObject({ code: 2, stdout: "" });
      expect(await verb("observe", "--reason", "work")).toMatchObject({ code: 2, stdout: "" });
      expect(await verb("sleep", "--reason", "work")).toMatchObject({ code: 2, stdout: "" });
      expect(await verb("observe", "--until", "soon", "--reason", "work")).toMatchObject({ code: 2 });
      const until = new Date(Date.now() + 3_600_000).toISOString();
      const observed = await verb("observe", "--until", until, "--reason", "work on the panel");
      expect(observed.stdout).toMatch(
        /^mode observe until .*, by \w+: work on the panel\n {2}bay-01: released once, as control.onObserve says\n$/,
      );
      await site.floor.nth("bay-01", 2);
      expect(site.floor.told("bay-01")).toEqual(["10 A EV-1", "release EV-1"]);
      await daemon.end("SIGKILL");
    }
    await using daemon = await site.run();
    expect(await daemon.view("/api/v1/status")).toMatchObject({
      mode: "observe",
      observing: { reason: "work on the panel" },
    });
    expect((await setpointd(["status", "-c", site.config])).stdout).toMatch(
      /^depot, mode observe until .*: work on the panel, up since/m,
    );
    await daemon.deliver(anEvent("EV-2", { lastsMs: 600 * SECOND, amperes: 12, vehicles: ["veh-2"] }));
    await waitFor(async () =>
      (await daemon.view<Row[]>("/api/v1/audit?event=EV-2")).some(({ words }) =>
        words.startsWith("observing, not sent: bay-02"),
      ),
    );
    expect(site.floor.sets("bay-02")).toEqual([]);
    const put = await fetch(`${daemon.operatorUrl}/api/v1/mode`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ mode: "drive", reason: "work is done" }),
    });
    expect([put.status, await put.json()]).toMatchObject([
      200,
      { mode: "drive", replaced: { reason: "work on the panel" } },
    ]);
    await site.floor.nth("bay-02", 1);
    await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");
    expect(await verb()).toMatchObject({ code: 0, stdout: "mode drive\n" });
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
