import { describe, expect, test } from "vitest";

import { millis } from "../../src/domain/units.ts";
import { aSite, anEvent, startOf } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

describe.skipIf(!mosquittoAvailable)("stopping and starting again", () => {
  test("after kill -9 the setpoints in force are sent again at once with the same id, and the future keeps its moments without the partner (F01, F30)", async () => {
    await using site = await aSite();
    const { floor, partner } = site;
    const spread = 3 * SECOND;
    await using killed = await site.run();
    const holding = partner.put(anEvent("EV-1", { lastsMs: 9 * SECOND }));
    const future = partner.put(
      anEvent("EV-2", {
        startIn: 5 * SECOND,
        randomizeStartMs: spread,
        lastsMs: 3 * SECOND,
        vehicles: ["veh-2", "veh-3"],
      }),
    );
    const lasting = partner.put(anEvent("EV-3", { lastsMs: 60 * SECOND, vehicles: ["veh-4"] }));
    await killed.deliver([holding, future, lasting]);
    await floor.nth("bay-01", 1);
    await floor.nth("bay-04", 1);
    await killed.end("SIGKILL");
    await partner[Symbol.asyncDispose]();
    const restarted = Date.now();
    await using daemon = await site.run();
    // What fell due while it was starting is late by that much and no more.
    const up = Date.now();

    const [before, again] = [await floor.nth("bay-01", 1), await floor.nth("bay-01", 2)];
    expect(again.set).toStrictEqual(before.set);
    expect(again.at).toBeGreaterThan(restarted);
    expect(again.at).toBeLessThan(up + SECOND);
    expect((await floor.nth("bay-04", 2)).set.id).toBe((await floor.nth("bay-04", 1)).set.id);
    for (const vehicle of ["veh-2", "veh-3"]) {
      const { at, set } = await floor.nth(vehicle.replace("veh-", "bay-0"), 1);
      const from = startOf(future) + site.offset(future, vehicle, spread);
      expect(at).toBeGreaterThanOrEqual(from);
      expect(at).toBeLessThan(Math.max(from, up) + SECOND);
      expect(set.epoch).toBeGreaterThan(before.set.epoch);
    }
    const released = await floor.nth("bay-01", 3);
    expect(released.set).toMatchObject({ kind: "release", until: null, event: "EV-1" });
    expect(released.at).toBeGreaterThanOrEqual(startOf(holding) + 9 * SECOND);
    expect(released.at).toBeLessThan(Math.max(startOf(holding) + 9 * SECOND, up) + SECOND);
    expect(released.set.epoch).toBeGreaterThan(before.set.epoch);
    expect(floor.told("bay-04")).toEqual(["16 A EV-3", "16 A EV-3"]);
    expect(daemon.line("the partner cannot be asked")?.level).toBe(40);
    // The first connection to the broker was on its way: that is no failed publish.
    const rows = await daemon.view<{ words: string }[]>("/api/v1/audit");
    expect(rows.filter(({ words }) => words.includes("not sent"))).toEqual([]);
  });

  test("a charger that is offline when the daemon starts again gets nothing until it is back, and then what holds", async () => {
    await using site = await aSite();
    const { floor } = site;
    const online = (bay: string, is: boolean) =>
      floor.publish(`setpointd/depot/chargers/${bay}/online`, String(is), true);
    await using killed = await site.run();
    await online("bay-02", false);
    await killed.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND, vehicles: ["veh-1", "veh-2", "veh-3"] }));
    await floor.nth("bay-01", 1);
    await floor.nth("bay-03", 1);
    await killed.end("SIGKILL");
    await online("bay-01", false);
    await using daemon = await site.run();
    await floor.nth("bay-03", 2);
    await daemon.deliver(anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-4"] }));
    await floor.nth("bay-04", 1);
    expect(floor.told("bay-01")).toEqual(["16 A EV-1"]);
    expect(floor.told("bay-02")).toEqual([]);
    for (const bay of ["bay-01", "bay-02"]) await online(bay, true);
    await floor.nth("bay-01", 2);
    await floor.nth("bay-02", 1);
    expect(floor.told("bay-01")).toEqual(["16 A EV-1", "16 A EV-1"]);
    expect(floor.told("bay-02")).toEqual(["16 A EV-1"]);
  });

  test("a window that passed while the daemon was down is recorded as missed and never applied late; what ended is released (F20)", async () => {
    await using site = await aSite();
    const { floor, partner } = site;
    await using killed = await site.run();
    const ends = partner.put(anEvent("EV-1", { lastsMs: 3 * SECOND }));
    const passes = partner.put(
      anEvent("EV-2", { startIn: 3 * SECOND, lastsMs: SECOND, vehicles: ["veh-2"] }),
    );
    await killed.deliver([ends, passes]);
    await floor.nth("bay-01", 1);
    await killed.end("SIGKILL");
    await waitFor(() => Date.now() > startOf(passes) + SECOND);
    await using daemon = await site.run();
    expect((await floor.nth("bay-01", 2)).set).toMatchObject({ kind: "release", event: "EV-1" });
    const row = await waitFor(async () => {
      const found = await daemon.view<{ kind: string; words: string }[]>("/api/v1/audit?event=EV-2");
      return found.find(({ kind }) => kind === "missed");
    });
    expect(row.words).toContain("veh-2 missed event EV-2");
    expect(floor.told("bay-02")).toEqual([]);
  });

  test("a second daemon on the same state ends with 1 and the reason, and the first goes on (F09)", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const second = await setpointd(["run", "-c", site.config]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain("another setpointd is using this state");
    expect(second.stderr).not.toMatch(/^\s+at /m);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * SECOND }));
    expect((await site.floor.nth("bay-01", 1)).set.event).toBe("EV-1");
  });

  test("SIGTERM stops within 5 s with 0, keeps the chargers as they are, and names those that stay limited", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await daemon.deliver([
      anEvent("EV-1", { lastsMs: 60 * SECOND }),
      anEvent("EV-2", { lastsMs: 60 * SECOND, amperes: 0, vehicles: ["veh-2"] }),
    ]);
    await site.floor.nth("bay-01", 1);
    await site.floor.nth("bay-02", 1);
    const asked = Date.now();
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(Date.now() - asked).toBeLessThan(5 * SECOND);
    expect(daemon.line("bay-01 stays at 16 A until")?.level).toBe(40);
    expect(daemon.line("bay-02 stays at pause until")?.level).toBe(40);
    expect(daemon.line("bay-03")).toBeUndefined();
    expect(daemon.errors).toBe("");
    expect(site.floor.told("bay-01")).toEqual(["16 A EV-1"]);
    expect(
      site.floor
        .on("gateway/online")
        .map(({ text }) => text)
        .at(-1),
    ).toBe("false");
  });

  test("SIGTERM stops within 5 s with 0 although partner and broker are gone", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    site.broker.freeze();
    await site.partner[Symbol.asyncDispose]();
    const asked = Date.now();
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(Date.now() - asked).toBeLessThan(5 * SECOND);
    site.broker.thaw();
  });

  test("SIGTERM while the partner is asked is recorded as a stop, and not as an outage of the partner", async () => {
    await using site = await aSite();
    const { faults } = site.partner;
    faults.latency = millis(60 * SECOND);
    await using daemon = await site.run();
    await waitFor(() => faults.requests.token > 0);
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(daemon.lines.filter(({ level }) => level > 30)).toEqual([]);
  });

  test.each(["release", "pause"])(
    "onStop %s does so to every limited charger before the end, and the next start undoes it",
    async (onStop) => {
      await using site = await aSite({ over: { control: { onStop } } });
      await using stopped = await site.run();
      await stopped.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })));
      await site.floor.nth("bay-01", 1);
      expect(await stopped.end("SIGTERM")).toBe(0);
      expect(site.floor.told("bay-01")).toEqual(["16 A EV-1", `${onStop} EV-1`]);
      expect((await site.floor.nth("bay-01", 2)).set).toMatchObject({
        kind: onStop,
        value: null,
        until: null,
      });
      expect(site.floor.told("bay-02")).toEqual([]);
      await using daemon = await site.run();
      await waitFor(
        () => site.floor.told("bay-01").at(-1) === "16 A EV-1" && site.floor.told("bay-01").length > 2,
      );
      const command = await site.floor.nth("bay-01", 2);
      expect(site.floor.sets("bay-01").at(-1)?.set.epoch).toBeGreaterThan(command.set.epoch);
      expect(daemon.errors).toBe("");
    },
  );

  test.each(["operator", "webhook"] as const)(
    "a start whose %s cannot listen ends with 1 and why; it decides nothing, and no stop follows it (F72)",
    async (listener) => {
      await using site = await aSite({ over: { control: { onStop: "release" } } });
      await using killed = await site.run();
      await killed.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })));
      await site.floor.nth("bay-01", 1);
      await killed.end("SIGKILL");
      const taken = new URL(site.partner.baseUrl).host;
      const hmac = { secret: { file: "webhook-secret" } };
      const webhook = { listen: taken, auth: { hmac } };
      site.configure(listener === "webhook" ? { webhook } : { operator: { listen: taken } });
      const failed = await setpointd(["run", "-c", site.config]);
      expect([failed.code, failed.stderr]).toEqual([
        1,
        expect.stringContaining(`${listener}.listen: ${taken}`),
      ]);
      expect(failed.stderr + failed.stdout).not.toMatch(/setpointd stops|acknowledged|not sent/);
      site.configure();
      await using daemon = await site.run();
      expect((await site.floor.nth("bay-01", 2)).set.event).toBe("EV-1");
      expect(site.floor.told("bay-01")).toEqual(["16 A EV-1", "16 A EV-1"]);
      expect((await daemon.get("/api/v1/audit")).text).not.toContain("setpointd stops");
    },
  );
});
