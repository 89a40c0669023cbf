import { setTimeout as sleep } from "node:timers/promises";

import { Mosquitto } from "../support/mosquitto.ts";
import { Daemon } from "./daemon.ts";
import { benchDepot, vehicles } from "./depot.ts";
import { NOTHING_DROPPED } from "./fanout.ts";
import { type Measurement, median, quantile } from "./figure.ts";
import { eventFor, Sender } from "./partner.ts";
import { quiet } from "./process.ts";
import { rivals } from "./relayed.ts";
import { lastOf, Subscriber } from "./subscriber.ts";

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

const OLDER = 500;

/**
 * Two hundred vehicles in one event while 500 older events are in force for them, over the same event for vehicles
 * that have no other.
 */
export const latency200Overlapped: Measurement = async ({ figure, progress }) => {
  const [each, samples] = [200, 60];
  const rounds = WARM_UP + samples;
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using depot = await benchDepot({ chargers: each * (1 + rounds), broker: broker.url });
  await using daemon = await Daemon.start(depot);
  await using subscriber = await Subscriber.on(broker.url);
  await using sender = new Sender(depot.webhook, 1);
  await daemon.hasBroker();
  const crowded = vehicles(each);
  const older = Array.from({ length: OLDER }, () => eventFor(crowded));
  for (const event of older) await sender.post(JSON.stringify(event));
  await quiet(daemon.pid);
  const [overlapped, alone]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    // A level of its own for each: the newest wins, and is sent.
    const ask = { amperes: 11 + (round % 2) };
    for (const [fleet, times] of [
      [crowded, overlapped],
      [vehicles(each, each * (1 + round)), alone],
    ] as const) {
      const took = await timed(sender, subscriber, JSON.stringify(eventFor(fleet, { ask })), each);
      if (round >= WARM_UP) times.push(took);
      await sleep(PAUSE_MS);
    }
  }
  progress(`latency200.overlapped: ${samples} samples each`);
  figure("latency200.overlapped", "ms", median(overlapped), median(alone));
};

async function timed(sender: Sender, subscriber: Subscriber, body: string, count: number): Promise<number> {
  const all = subscriber.next(count);
  const began = performance.now();
  await sender.post(body);
  return lastOf(await all) - began;
}
