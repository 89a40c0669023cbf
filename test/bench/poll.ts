import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { after, millis } from "../../src/domain/units.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Side } from "./side.ts";
import { Daemon } from "./daemon.ts";
import { benchDepot, scratchDirectory, vehicles } from "./depot.ts";
import { type Measurement, median } from "./figure.ts";
import type { ListPartner } from "./listPartner.ts";
import { eventFor, now } from "./partner.ts";
import { cpuOf, quiet } from "./process.ts";

const EVENTS = 10_000;
const RUNS = 5;
/** Of one run, at a poll a second. */
const RUN_MS = 20_000;
const CHARGERS = 200;
const TOMORROW = millis(86_400_000);

/**
 * CPU of taking in a list of 10,000 events, unchanged and with one new event, over JSON.parse of it; what an idle daemon
 * needs is not counted.
 */
export const poll10k: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start();
  const fleet = vehicles(CHARGERS);
  const list = Array.from({ length: EVENTS }, (_, index) =>
    eventFor(fleet.slice(index % CHARGERS, (index % CHARGERS) + 1), { start: after(now(), TOMORROW) }),
  );
  using scratch = scratchDirectory();
  const file = join(scratch.path, "list.json");
  writeFileSync(file, JSON.stringify(list));
  await using partner = await Side.start<ListPartner>("listPartner", [file]);
  const wish = { chargers: CHARGERS, broker: broker.url, partner: partner.ready.url };
  using busy = await benchDepot({ ...wish, site: "busy", pollEvery: "1s" });
  using idle = await benchDepot({ ...wish, site: "idle" });
  await using polling = await Daemon.start(busy);
  await using resting = await Daemon.start(idle);
  await using bare = await Side.start<number>("floor/parser", [file]);
  for (const daemon of [polling, resting])
    await waitFor(async () => (await daemon.metric("setpointd_dispatches")) === EVENTS, {
      timeoutMs: 30_000,
    });
  await quiet(resting.pid);

  for (const name of ["poll10k", "poll10k.oneNew"]) {
    const [perPoll, floors]: [number[], number[]] = [[], []];
    while (perPoll.length < RUNS) {
      const before = [cpuOf(polling.pid), cpuOf(resting.pid), (await partner.order("go")).lists] as const;
      for (const ends = performance.now() + RUN_MS; performance.now() < ends; await sleep(1_000)) {
        if (name === "poll10k") continue;
        list.push(eventFor(fleet.slice(0, 1), { start: after(now(), TOMORROW) }));
        writeFileSync(file, JSON.stringify(list));
        await partner.order("go");
      }
      const used = cpuOf(polling.pid) - before[0] - (cpuOf(resting.pid) - before[1]);
      const polls = (await partner.order("go")).lists - before[2];
      const floor = await bare.order("go");
      perPoll.push(used / polls);
      floors.push(floor);
      progress(`${name}: ${used} ms CPU for ${polls} polls; JSON.parse ${floor.toFixed(1)} ms`);
    }
    figure(name, "ms CPU", median(perPoll), median(floors));
  }
};
