import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { anEvent, aSite, startOf } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const SYNC = 2 * SECOND;
const SLOW_COMMITS = new URL("../support/slowCommits.ts", import.meta.url).href;

describe.skipIf(!mosquittoAvailable)("a disk whose sync takes two seconds", () => {
  test("F08: deliveries share syncs, starts and refreshes are late by a few of them, it shows, and all is quick again after", async () => {
    await using site = await aSite({ over: { control: { refresh: "1s" } } });
    const slow = join(site.directory, "slow");
    await using daemon = await site.run({ NODE_OPTIONS: `--import=${SLOW_COMMITS}`, SLOW_DISK: slow });
    await daemon.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })));
    await site.floor.nth("bay-01", 1);

    writeFileSync(slow, "");
    const began = Date.now();
    const later = anEvent("EV-2", { startIn: 8 * SECOND, lastsMs: 60 * SECOND, vehicles: ["veh-2"] });
    const others = Array.from({ length: 40 }, (_, index) =>
      anEvent(`EV-F${index}`, { startIn: 3600 * SECOND, lastsMs: SECOND, vehicles: ["veh-3"] }),
    );
    const answers = await Promise.all([later, ...others].map((event) => daemon.deliver(event)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    // One sync each would be 82 s.
    expect(Date.now() - began).toBeLessThan(6 * SYNC);

    const started = await site.floor.nth("bay-02", 1, 30 * SECOND);
    expect(started.at).toBeGreaterThanOrEqual(startOf(later));
    expect(started.at).toBeLessThan(startOf(later) + 4 * SYNC);
    const leases = site.floor.sets("bay-01").filter(({ at }) => at >= began);
    const pauses = leases.slice(1).map(({ at }, index) => at - (leases[index]?.at ?? 0));
    expect(Math.max(...pauses)).toBeLessThan(4 * SYNC);
    expect(new Set(site.floor.told("bay-01"))).toEqual(new Set(["16 A EV-1"]));
    const { store } = await daemon.view<{ store: { longestCommitMs: number } }>("/api/v1/status");
    expect(store.longestCommitMs).toBeGreaterThanOrEqual(SYNC);

    rmSync(slow);
    await waitFor(async () => {
      const asked = Date.now();
      await daemon.get("/healthz");
      return Date.now() - asked < SECOND / 2;
    });
    const asked = Date.now();
    await daemon.deliver(anEvent("EV-3", { lastsMs: 60 * SECOND, vehicles: ["veh-4"] }));
    expect((await site.floor.nth("bay-04", 1)).at - asked).toBeLessThan(SYNC);
  });
});
