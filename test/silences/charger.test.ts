import { describe, expect, test } from "vitest";

import { chargerId } from "../../src/domain/units.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { aPlan, BAYS, chargersOf, isOver, PATIENCE, SECOND, since } from "./aPlan.ts";

describe
  .skipIf(!mosquittoAvailable)
  .concurrent("a short silence of a charger, or of its meter, over a start and an end", () => {
    test("F88: chargers that dropped off receive nothing, and the setpoint in force, once, when they are back", async () => {
      await using site = await aSite({ over: { control: { refresh: "1h" } } });
      await using chargers = await chargersOf(site);
      await using daemon = await site.run();
      const plan = await aPlan(site, daemon);
      for (const bay of BAYS) await chargers.at(chargerId(bay)).dropOff();
      await waitFor(
        () =>
          site.floor.heard.filter(({ topic, text }) => topic.endsWith("/online") && text === "false")
            .length >= 4,
      );
      const from = site.floor.heard.length;
      await isOver(plan);
      expect(BAYS.flatMap((bay) => since(site, from, bay))).toEqual([]);
      for (const bay of BAYS) chargers.at(chargerId(bay)).comeBack();
      await waitFor(() => BAYS.every((bay) => since(site, from, bay).length > 0), PATIENCE);
      expect(BAYS.map((bay) => since(site, from, bay))).toEqual([
        ["release ends"],
        ["12 starts"],
        ["release passes"],
        ["16 holds"],
      ]);
    });

    test("F88: a charger without messages becomes unreachable and is recorded, and its first message brings one publish", async () => {
      await using site = await aSite({ over: { control: { silentAfter: "10s" } } });
      await using daemon = await site.run();
      const plan = await aPlan(site, daemon);
      const speak = (): Promise<void> =>
        site.floor.publish(
          "setpointd/depot/chargers/bay-01/telemetry",
          JSON.stringify({ at: new Date().toISOString() }),
        );
      await speak();
      // Silence is looked for when there is something to look at, ten seconds apart at least.
      await daemon.deliver(
        anEvent("edge", { startIn: 20 * SECOND, lastsMs: SECOND, vehicles: ["veh-4"], priority: 1 }),
      );
      await isOver(plan);
      const told = await waitFor(() => daemon.line("bay-01 is unreachable"), PATIENCE);
      expect(told.level).toBe(40);
      const from = site.floor.heard.length;
      await speak();
      await speak();
      await waitFor(() => since(site, from, "bay-01").length > 0, PATIENCE);
      await daemon.deliver(anEvent("last", { lastsMs: 60 * SECOND, vehicles: ["veh-3"] }));
      await waitFor(() => since(site, from, "bay-03").length > 0, PATIENCE);
      expect(since(site, from, "bay-01")).toEqual(["release ends"]);
    });

    test("F89: a meter without readings while its charger answers: no verdict and no resend; with its first reading it is judged", async () => {
      await using site = await aSite({ over: { control: { verdict: { ramp: "1s" } } } });
      await using daemon = await site.run();
      const bay = "setpointd/depot/chargers/bay-04";
      await site.floor.publish(`${bay}/online`, "true", true);
      const plan = await aPlan(site, daemon);
      const { id } = (await site.floor.nth("bay-04", 1)).set;
      await site.floor.publish(`${bay}/ack`, JSON.stringify({ id, accepted: true, value: 16, reason: null }));
      await isOver(plan);
      const outcomes = async (): Promise<string> =>
        (await daemon.view<{ kind: string; words: string }[]>("/api/v1/audit?limit=1000"))
          .flatMap(({ kind, words }) => (kind === "outcome" ? [words] : []))
          .join("\n");
      expect(await outcomes()).toContain(`bay-04 ${id} accepted by the charger`);
      expect(await outcomes()).not.toContain("followed");
      expect(site.floor.commands).toHaveLength(6);
      const reading = {
        at: new Date().toISOString(),
        state: "charging",
        limitA: 16,
        currentsA: [16, 16, 16],
      };
      await site.floor.publish(`${bay}/telemetry`, JSON.stringify(reading));
      await waitFor(async () => (await outcomes()).includes(`bay-04 ${id} followed`), PATIENCE);
      expect(site.floor.commands).toHaveLength(6);
    });
  });
