import { describe, expect, test } from "vitest";

import { aSite, anEvent, startOf, type Site } from "../support/aSite.ts";
import { Floor } from "../support/aFloor.ts";
import { Gate } from "../support/aGate.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

/** The daemon reaches the broker through the gate only: while it is shut, the broker can come back unseen. */
function behind(site: Site, gate: Gate): void {
  site.configure({ mqtt: { url: `mqtt://127.0.0.1:${gate.port}` } });
}

describe.skipIf(!mosquittoAvailable)("a broker that goes and comes", () => {
  test("a broker that restarts empty receives the setpoints in force, one message per charger (F80, F85)", async () => {
    await using site = await aSite();
    await using gate = await Gate.before(site.broker.port);
    behind(site, gate);
    await gate.open();
    await using daemon = await site.run();
    const { floor } = site;
    await daemon.deliver([
      anEvent("EV-stays", { lastsMs: 20 * SECOND }),
      anEvent("EV-ends", { lastsMs: 3 * SECOND, vehicles: ["veh-2"] }),
      anEvent("EV-changes", { lastsMs: 60 * SECOND, vehicles: ["veh-3"] }),
    ]);
    for (const charger of ["bay-01", "bay-02", "bay-03"]) await floor.nth(charger, 1);
    const standing = floor.sets("bay-01")[0]?.set;

    await gate.shut();
    await site.broker.kill();
    await waitFor(async () => !(await daemon.hasBroker()));
    await daemon.deliver([
      anEvent("EV-changes", { lastsMs: 60 * SECOND, amperes: 14, vehicles: ["veh-3"] }),
      anEvent("EV-passes", { lastsMs: SECOND, amperes: 9, vehicles: ["veh-1"], priority: 1 }),
    ]);
    const changed = anEvent("EV-changes", { lastsMs: 60 * SECOND, amperes: 12, vehicles: ["veh-3"] });
    await daemon.deliver(changed);
    await waitFor(async () =>
      (await daemon.view<{ words: string }[]>("/api/v1/audit?event=EV-ends")).some(({ words }) =>
        words.includes("has ended"),
      ),
    );
    await site.broker.start();
    await floor.listening();
    floor.heard.length = 0;
    await gate.open();

    await waitFor(() => floor.commands.length >= 3, { timeoutMs: 20_000 });
    expect(floor.told("bay-01")).toEqual(["16 A EV-stays"]);
    expect(floor.told("bay-02")).toEqual(["release EV-ends"]);
    expect(floor.told("bay-03")).toEqual(["12 A EV-changes"]);
    expect(floor.sets("bay-01")[0]?.set.until).toBe(standing?.until);
    // The next event passes through the same pipe: nothing else came before it.
    await daemon.deliver(anEvent("EV-last", { lastsMs: 60 * SECOND, vehicles: ["veh-4"] }));
    await floor.nth("bay-04", 1);
    expect(floor.commands).toHaveLength(4);
    expect(floor.on("gateway/online").map(({ text }) => text)).toEqual(["true"]);
  });

  test("an outage that a restart falls into is on record in two parts, and ends", async () => {
    await using site = await aSite();
    await using gate = await Gate.before(site.broker.port);
    behind(site, gate);
    await gate.open();
    {
      await using daemon = await site.run();
      await gate.shut();
      await waitFor(async () => !(await daemon.hasBroker()));
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    await using daemon = await site.start();
    const told = async (): Promise<readonly unknown[]> => {
      const rows =
        await daemon.view<{ kind: string; facts: { outage?: string; over?: true } }[]>("/api/v1/audit");
      return rows
        .filter(({ kind, facts }) => kind === "silence" && facts.outage === "broker")
        .map(({ facts }) => facts.over ?? false);
    };
    await waitFor(async () => (await told()).length === 3);
    await gate.open();
    await waitFor(async () => (await told()).length === 4, { timeoutMs: 20_000 });
    expect(await told()).toEqual([false, true, false, true]);
  });

  test("a broker that is down at the start leaves the daemon ready; when it is up, each charger receives the setpoint in force then (F80)", async () => {
    await using site = await aSite();
    await using gate = await Gate.before(site.broker.port);
    behind(site, gate);
    await using daemon = await site.start();
    const { floor } = site;
    expect((await daemon.get("/readyz")).status).toBe(200);
    const short = anEvent("EV-short", { lastsMs: SECOND, vehicles: ["veh-2"] });
    const holding = anEvent("EV-holds", { lastsMs: 60 * SECOND });
    expect((await daemon.deliver([short, holding])).json).toEqual({ accepted: 2, repeats: 0, rejected: 0 });
    await waitFor(() => Date.now() > startOf(short) + 1500);
    await gate.open();
    const { set, at } = await floor.nth("bay-01", 1, 20_000);
    expect(set).toMatchObject({ kind: "current", event: "EV-holds" });
    expect(at).toBeGreaterThan(startOf(short) + SECOND);

    await daemon.deliver(anEvent("EV-last", { lastsMs: 60 * SECOND, vehicles: ["veh-4"] }));
    await floor.nth("bay-04", 1);
    expect(floor.told("bay-01")).toEqual(["16 A EV-holds"]);
    expect(floor.told("bay-02")).not.toContain("16 A EV-short");
    expect(floor.told("bay-02").length).toBeLessThanOrEqual(1);
    expect(floor.told("bay-03")).toEqual([]);
  });

  test("the gateway's own online is retained: true while it runs, false by last will after kill -9", async () => {
    await using site = await aSite();
    const spoken = () =>
      site.floor.on("setpointd/depot/gateway/online").map(({ text, retain }) => [text, retain]);
    await using daemon = await site.run();
    await waitFor(() => spoken().length > 0);
    expect(spoken()).toEqual([["true", true]]);
    await daemon.end("SIGKILL");
    await waitFor(() => spoken().length > 1);
    expect(spoken()).toEqual([
      ["true", true],
      ["false", true],
    ]);
    await using late = await Floor.at(site.broker.url);
    await waitFor(() => late.on("gateway/online").length > 0);
    expect(late.on("gateway/online")[0]?.text).toBe("false");
  });

  test("no command is retained at the broker, and each charger's state is (F93)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    await waitFor(() => site.floor.on("bay-01/state").some(({ text }) => text.includes("EV-1")));
    await using late = await Floor.at(site.broker.url);
    await waitFor(() => late.on("bay-01/state").length > 0);
    expect(JSON.parse(late.on("bay-01/state")[0]?.text ?? "")).toMatchObject({
      asked: { kind: "current", value: 16, unit: "A", event: "EV-1" },
      allowed: { kind: "current", value: 16, unit: "A" },
      measured: null,
      reason: { words: expect.stringContaining("EV-1") },
      until: expect.stringMatching(/Z$/),
    });
    expect(late.commands).toEqual([]);
  });

  test("a charger that is online again receives its setpoint, once each time (F88)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const online = "setpointd/depot/chargers/bay-01/online";
    await site.floor.publish(online, "false", true);
    // The broker has it before the daemon has.
    await waitFor(async () => {
      const chargers =
        await daemon.view<readonly { readonly charger: string; readonly online: boolean | null }[]>(
          "/api/v1/chargers",
        );
      return chargers.find(({ charger }) => charger === "bay-01")?.online === false;
    });
    await daemon.deliver([
      anEvent("EV-1", { lastsMs: 60 * SECOND }),
      anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] }),
    ]);
    await site.floor.nth("bay-02", 1);
    expect(site.floor.told("bay-01")).toEqual([]);
    await site.floor.publish(online, "true", true);
    await site.floor.nth("bay-01", 1);
    await site.floor.publish(online, "false", true);
    await site.floor.publish(online, "true", true);
    const [first, second] = [await site.floor.nth("bay-01", 1), await site.floor.nth("bay-01", 2)];
    expect(second.set).toStrictEqual(first.set);
  });
});
