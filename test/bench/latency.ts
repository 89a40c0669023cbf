import { setTimeout as sleep } from "node:timers/promises";

import { vehicles } from "./depot.ts";
import { type Measurement, median, quantile } from "./figure.ts";
import { eventFor, type Sender } from "./partner.ts";
import { rivals } from "./relayed.ts";
import { lastOf, type Subscriber } from "./subscriber.ts";

/** Deliveries before the first that counts. */
const WARM_UP = 20;
/** Longer than outcomes wait for their commit: each delivery finds an idle program. */
const PAUSE_MS = 150;

/** From the POST of an event that is due now to the last of its messages, median and p99, over the bare relay. */
const latency =
  (name: string, vehiclesEach: number, samples: number): Measurement =>
  async ({ figure, progress }) => {
    // Vehicles of its own for every event: what they were told before would make the later ones dearer.
    await using pair = await rivals(vehiclesEach * (WARM_UP + samples), 1);
    const [daemon, relay]: [number[], number[]] = [[], []];
    for (let round = 0; round < WARM_UP + samples; round += 1) {
      const body = JSON.stringify(eventFor(vehicles(vehiclesEach, round * vehiclesEach)));
      for (const [sender, times] of [
        [pair.toDaemon, daemon],
        [pair.toRelay, relay],
      ] as const) {
        const took = await timed(sender, pair.subscriber, body, vehiclesEach);
        if (round >= WARM_UP) times.push(took);
        await sleep(PAUSE_MS);
      }
    }
    progress(`${name}: ${samples} samples each`);
    figure(name, "ms", median(daemon), median(relay));
    figure(`${name}.p99`, "ms", quantile(daemon, 0.99), quantile(relay, 0.99));
  };

/** One vehicle. */
export const latency1 = latency("latency1", 1, 200);
/** Two hundred vehicles in one event. */
export const latency200 = latency("latency200", 200, 60);

async function timed(sender: Sender, subscriber: Subscriber, body: string, count: number): Promise<number> {
  const all = subscriber.next(count);
  const began = performance.now();
  await sender.post(body);
  return lastOf(await all) - began;
}
