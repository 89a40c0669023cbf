import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Sections, type Site, startOf } from "../support/aSite.ts";
import { FaultProxy } from "../support/faultProxy.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { aPlan, BAYS, isOver, PATIENCE, SECOND, silences, since } from "./aPlan.ts";

const vtnThrough = (api: FaultProxy, identity: FaultProxy): Sections => ({
  vtn: {
    baseUrl: `http://127.0.0.1:${api.port}`,
    tokenUrl: `http://127.0.0.1:${identity.port}/connect/token`,
    clientId: "depot",
    clientSecret: { file: "client-secret" },
    pollEvery: "1s",
    staleAfter: "10s",
  },
});

const partnerPort = (site: Site): number => Number(new URL(site.partner.baseUrl).port);

describe
  .skipIf(!mosquittoAvailable)
  .concurrent("a short silence of the partner over a start and an end", () => {
    test.each(silences)(
      "F30 F31 %s partner and token server: starts and ends keep their moments, it is logged, then an alarm; after it only new events are published",
      async (_name, fault) => {
        // The back-off may outlast the usual minute, after which every command would be refreshed.
        await using site = await aSite({ over: { control: { refresh: "1h" } } });
        await using proxy = await FaultProxy.before(partnerPort(site));
        site.configure(vtnThrough(proxy, proxy));
        await using daemon = await site.run();
        await waitFor(() => daemon.line("the partner answers"));
        const plan = await aPlan(site, daemon);
        const calls = proxy.calls;
        proxy.fault = fault;
        if (fault.kind === "refuse") proxy.reset();
        await isOver(plan);
        for (const [bay, count, moment] of [
          ["bay-02", 1, startOf(plan.starts)],
          ["bay-03", 1, startOf(plan.passes)],
          ["bay-03", 2, startOf(plan.passes) + 3 * SECOND],
          ["bay-01", 2, startOf(plan.ends) + 6 * SECOND],
        ] as const) {
          const { at } = await site.floor.nth(bay, count);
          expect(at - moment, bay).toBeGreaterThanOrEqual(0);
          expect(at - moment, bay).toBeLessThan(3 * SECOND);
        }
        const alarm = await waitFor(() => daemon.line("no answer from the partner since"), PATIENCE);
        expect(alarm.level).toBe(50);
        expect(daemon.line("the partner cannot be asked")?.level).toBe(40);
        // Cut off, then refused, then without a token: each reason once, and the alarm.
        const complaints = daemon.lines
          .filter(({ level, msg }) => level >= 40 && msg.includes("partner"))
          .map(({ msg }) => msg);
        expect(complaints).toEqual([...new Set(complaints)]);
        expect(complaints.length).toBeLessThan(8);
        expect(proxy.calls - calls).toBeLessThan(15);

        site.partner.put(anEvent("news", { lastsMs: 600 * SECOND, amperes: 8 }));
        const from = site.floor.heard.length;
        proxy.fault = { kind: "none" };
        if (fault.kind === "halfOpen") proxy.reset();
        await waitFor(() => since(site, from, "bay-01").length > 0, PATIENCE);
        await waitFor(() => daemon.line("the partner answers again"), PATIENCE);
        expect(BAYS.map((bay) => since(site, from, bay))).toEqual([["8 news"], [], [], []]);
      },
      120_000,
    );

    test("F35: the token server alone silent from the start on: webhooks are acted on, the API is not asked without a token", async () => {
      await using site = await aSite({ over: { control: { refresh: "1h" } } });
      await using api = await FaultProxy.before(partnerPort(site));
      await using identity = await FaultProxy.before(partnerPort(site));
      identity.fault = { kind: "refuse" };
      site.configure(vtnThrough(api, identity));
      await using daemon = await site.run();
      await waitFor(() => daemon.line("the partner cannot be asked: no access token"));
      const plan = await aPlan(site, daemon);
      await isOver(plan);
      for (const [bay, count] of [
        ["bay-01", 2],
        ["bay-02", 1],
        ["bay-03", 2],
      ] as const)
        await site.floor.nth(bay, count);
      expect(BAYS.map((bay) => site.floor.told(bay))).toEqual([
        ["10 A ends", "release ends"],
        ["12 A starts"],
        ["14 A passes", "release passes"],
        ["16 A holds"],
      ]);
      expect(api.calls).toBe(0);
      expect(identity.calls).toBeLessThan(12);
      identity.fault = { kind: "none" };
      await waitFor(() => daemon.line("the partner answers"), PATIENCE);
      expect(site.floor.commands).toHaveLength(6);
    });
  });
