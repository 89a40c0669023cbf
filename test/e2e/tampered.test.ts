import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";

import { sumOf } from "../../src/store/sqlite/auditRows.ts";
import { anEvent, aSite } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

describe.skipIf(!mosquittoAvailable)("a state that another program edited", () => {
  test("an edited event is never commanded: it is set aside, and the partner's own is asked for and goes on", async () => {
    await using site = await aSite();
    const { floor, partner } = site;
    {
      await using daemon = await site.run();
      await daemon.deliver(partner.put(anEvent("EV-1", { lastsMs: 300 * SECOND })));
      expect((await floor.nth("bay-01", 1)).set).toMatchObject({ value: 16 });
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    {
      using database = new DatabaseSync(join(site.state, "setpointd.db"));
      const stored = database.prepare("SELECT body, mac FROM event WHERE id = 'EV-1'").get();
      const body = String(stored?.["body"]).replace('"level":16', '"level":32');
      expect(body).toContain('"level":32');
      const sum = sumOf("event", "EV-1", body, String(stored?.["mac"]));
      database.prepare("UPDATE event SET body = ?, sum = ? WHERE id = 'EV-1'").run(body, sum);
    }
    await using daemon = await site.run();
    await waitFor(() => daemon.line("event EV-1 in a state was set aside"));
    await waitFor(async () => (await daemon.get("/api/v1/events")).text.includes("EV-1"));
    await waitFor(() => floor.told("bay-01").length > 1 && floor.told("bay-01").at(-1) === "16 A EV-1");
    expect(floor.told("bay-01").join()).not.toContain("32 A");
    expect((await daemon.get("/api/v1/status")).text).toContain("edited its stored copy");
  });
});
