import { describe, expect, test } from "vitest";

import { chargerId } from "../../src/domain/units.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { FaultProxy } from "../support/faultProxy.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { aPlan, chargersOf, isOver, PATIENCE, SECOND, silences, since } from "./aPlan.ts";

describe
  .skipIf(!mosquittoAvailable)
  .concurrent("a short silence of the broker over a start and an end", () => {
    test.each(silences)(
      "F80 F81 F91, %s broker: nothing is kept for later, the outage is logged once; after it each charger receives its setpoint, once",
      async (_name, fault) => {
        await using site = await aSite({ over: { control: { refresh: "1h" } } });
        await using proxy = await FaultProxy.before(site.broker.port);
        site.configure({ mqtt: { url: `mqtt://127.0.0.1:${proxy.port}` } });
        await using daemon = await site.run();
        const plan = await aPlan(site, daemon);
        const calls = proxy.calls;
        proxy.fault = fault;
        if (fault.kind === "refuse") proxy.reset();
        await isOver(plan);
        await waitFor(() => daemon.line("broker unreachable"), PATIENCE);
        expect(await daemon.hasBroker()).toBe(false);
        expect(proxy.calls - calls).toBeLessThan(12);
        const from = site.floor.heard.length;
        proxy.fault = { kind: "none" };
        await waitFor(
          () => since(site, from, "bay-01").length * since(site, from, "bay-02").length > 0,
          PATIENCE,
        );
        await daemon.deliver(anEvent("last", { lastsMs: 60 * SECOND, amperes: 8, vehicles: ["veh-3"] }));
        await waitFor(() => since(site, from, "bay-03").includes("8 last"), PATIENCE);
        expect(since(site, from, "bay-01")).toEqual(["release ends"]);
        expect(since(site, from, "bay-02")).toEqual(["12 starts"]);
        // Nobody knows whether the command of what came and went had got through: it is let go.
        expect(since(site, from, "bay-03").filter((words) => words !== "8 last")).toEqual(["release passes"]);
        expect(since(site, from, "bay-04")).toEqual(["16 holds"]);
        const told = daemon.lines.filter(({ msg }) => msg.startsWith("broker unreachable"));
        expect(told).toHaveLength(new Set(told.map((line) => line["reason"])).size);
        const rows = await daemon.view<{ words: string }[]>("/api/v1/audit?event=passes");
        expect(rows.map(({ words }) => words).join("\n")).toContain("not sent");
      },
      120_000,
    );

    test("F91 L2: cut off from the gateway, chargers go to their own default with the end of their lease, and back under control afterwards", async () => {
      await using site = await aSite({ over: { control: { refresh: "1s" } } });
      await using proxy = await FaultProxy.before(site.broker.port);
      site.configure({ mqtt: { url: `mqtt://127.0.0.1:${proxy.port}` } });
      await using chargers = await chargersOf(site);
      await using daemon = await site.run();
      await daemon.deliver(anEvent("holds", { lastsMs: 600 * SECOND }));
      const bay = chargerId("bay-01");
      const limit = () => chargers.model(bay).order?.expires ?? 0;
      await waitFor(() => limit() > Date.now());
      // Renewed before it ends.
      const lease = limit();
      await waitFor(() => limit() > lease);
      proxy.fault = { kind: "halfOpen" };
      const began = Date.now();
      await waitFor(() => limit() <= Date.now(), PATIENCE);
      expect(Date.now() - began).toBeLessThan(4 * SECOND);
      await waitFor(() => daemon.line("broker unreachable"), PATIENCE);
      proxy.fault = { kind: "none" };
      await waitFor(() => limit() > Date.now(), PATIENCE);
      expect(site.floor.told("bay-01").every((words) => words === "16 A holds")).toBe(true);
    });
  });
