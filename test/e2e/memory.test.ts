import { describe, expect, test } from "vitest";

import type { Daemon } from "../support/aDaemon.ts";
import { anEvent, aSite, startOf } from "../support/aSite.ts";
import { memoryGroup } from "../support/memoryGroup.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";

const SECOND = 1000;
const MB = 2 ** 20;
/** Three seconds on an idle machine; the tests of this one run side by side. */
const SOON = 12 * SECOND;

describe.skipIf(!mosquittoAvailable)("a machine that is out of memory", () => {
  test("F14: killed for its memory in a flood, setpoints in force are sent again soon after the next start, and nothing acknowledged is lost (S7)", async (context) => {
    using group = memoryGroup(`flood-${process.pid}`, 8 * MB);
    if (group === null) return context.skip("limits of memory need root and a group of our own");
    await using site = await aSite();
    await using flooded = await site.run();
    const future = anEvent("EV-2", { startIn: 25 * SECOND, lastsMs: 60 * SECOND, vehicles: ["veh-2"] });
    await flooded.deliver([
      site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })),
      site.partner.put(future),
    ]);
    const before = await site.floor.nth("bay-01", 1);
    group.add(flooded.pid);

    const ended = flooded.end("SIGCONT");
    const taken: string[] = [];
    const isOver = flood(flooded, taken);
    expect(await ended).toBeNull();
    await isOver;
    expect(group.killed()).toBe(true);

    const startedAt = Date.now();
    await using daemon = await site.run();
    const again = await site.floor.nth("bay-01", 2);
    expect(again.set.id).toBe(before.set.id);
    expect(again.at - startedAt).toBeLessThan(SOON);
    const known = new Set((await daemon.view<{ id: string }[]>("/api/v1/events")).map(({ id }) => id));
    expect(taken.filter((id) => !known.has(id))).toEqual([]);
    const started = await site.floor.nth("bay-02", 1, 40 * SECOND);
    expect(Math.abs(started.at - startOf(future))).toBeLessThan(SECOND);
  });
});

/** Large deliveries, several at a time, until nobody answers; notes the ids that were acknowledged. */
async function flood(daemon: Daemon, taken: string[]): Promise<void> {
  const senders = Array.from({ length: 8 }, async (_, sender) => {
    for (let number = 0; ; number += 1) {
      const id = `EV-F${sender}-${number}`;
      const vehicles = Array.from({ length: 10_000 }, (_, index) => `somebody-else-${id}-${index}`);
      const event = anEvent(id, { startIn: 3600 * SECOND, lastsMs: SECOND, vehicles });
      const answer = await daemon.deliver(event).catch(() => null);
      if (answer === null) return;
      if (answer.status === 202) taken.push(id);
    }
  });
  await Promise.all(senders);
}
