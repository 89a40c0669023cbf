import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { after, instant, millis } from "../../src/domain/units.ts";
import { openState } from "../../src/store/sqlite/open.ts";
import { anEvent, live, targetsOf } from "../support/anEvent.ts";
import { aSite, type Site } from "../support/aSite.ts";
import { memoryGroup } from "../support/memoryGroup.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const MIB = 2 ** 20;
/** Half of what the unit allows. */
const MEMORY_MAX = 512 * MIB;
/** Processor time until it is ready, nearly all of it for the program and its configuration. */
const PROCESSOR_MS = 15_000;
/** A busy machine may be slow. */
const PATIENCE_MS = 60_000;
const QUARTER = 15 * 60_000;
/** Bytes of one commit. */
const BATCH = 4 * MIB;

/** Writes events of 15 minutes for all vehicles, one after the other, the last one over since an hour. */
async function writeHistory(site: Site, vehicles: number, events: number): Promise<void> {
  const now = instant(Date.now());
  const opened = openState(site.state, {
    now: () => now,
    random: randomBytes,
    keys: { site: null, proof: null },
    log: pino({ level: "silent" }),
  });
  if (!opened.ok) throw new Error(opened.reason);
  using store = opened.store;
  const targets = targetsOf(...names(vehicles, "veh"));
  const perCommit = Math.max(1, Math.floor(BATCH / (vehicles * 10)));
  for (let number = 0; number < events; number += 1) {
    const start = after(now, millis(-(events - number) * QUARTER - 3_600_000));
    const event = anEvent({ id: `EV-${number}`, start, revision: start, targets });
    store.write([{ kind: "event", known: live({ ...event, duration: millis(QUARTER) }) }]);
    if (number % perCommit === 0 || number === events - 1)
      expect(await store.durable()).toEqual({ ok: true });
  }
}

const names = (count: number, kind: "veh" | "bay"): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${kind}-${index + 1}`);

function configureFor(site: Site, vehicles: number): void {
  site.configure({
    chargers: names(vehicles, "bay").map((id) => ({ id, current: { min: 6, max: 32 } })),
    vehicles: names(vehicles, "veh").map((id, index) => ({ id, charger: `bay-${index + 1}` })),
  });
}

describe.skipIf(!mosquittoAvailable || process.platform !== "linux")(
  "a site with months of events that are over",
  () => {
    test.for([
      [600, 8640],
      [20_000, 180],
    ] as const)(
      "%i vehicles with %i events start soon, and within the unit's memory limit",
      async ([vehicles, events]) => {
        await using site = await aSite();
        configureFor(site, vehicles);
        await writeHistory(site, vehicles, events);
        using group = memoryGroup(`history-${process.pid}`, MEMORY_MAX);
        const began = performance.now();
        await using daemon = await site.start({}, group?.within, PATIENCE_MS);
        await waitFor(async () => (await daemon.get("/readyz")).status === 200, { timeoutMs: PATIENCE_MS });
        const readyAfter = performance.now() - began;
        const worked = daemon.processorMs;
        const peak = daemon.peakMemory;
        console.info(
          `${vehicles} x ${events}: ready after ${Math.round(readyAfter)} ms (${worked} ms of processor time), at most ${Math.round(peak / MIB)} MiB`,
        );
        expect(worked).toBeLessThan(PROCESSOR_MS);
        expect(peak).toBeLessThan(MEMORY_MAX);
        expect(group?.killed() ?? false).toBe(false);
        await waitFor(async () => (await daemon.view<readonly unknown[]>("/api/v1/events")).length > 0);
        expect(daemon.peakMemory).toBeLessThan(MEMORY_MAX);
      },
    );
  },
);
