import { vehicles } from "./depot.ts";
import { type Measurement, median } from "./figure.ts";
import { eventFor, type Sender } from "./partner.ts";
import { quiet } from "./process.ts";
import { rivals } from "./relayed.ts";
import { lastOf, type Subscriber } from "./subscriber.ts";

const EVENTS = 1_000;
const RUNS = 5;
const WARM_UP = 1;
/** A thousand in the same moment is past what anyone delivers; so many connections at once is not. */
const CONNECTIONS = 20;

/**
 * 1,000 signed events of one vehicle each, posted as fast as they are answered, to the last message, over the bare
 * relay: over 20 connections, and one after another.
 */
export const burst1k: Measurement = async ({ figure, progress }) => {
  for (const [name, connections] of [
    ["burst1k", CONNECTIONS],
    ["burst1k.oneByOne", 1],
  ] as const) {
    await using pair = await rivals(EVENTS * (WARM_UP + RUNS), connections);
    const [daemon, relay]: [number[], number[]] = [[], []];
    for (let run = 0; run < WARM_UP + RUNS; run += 1) {
      const bodies = vehicles(EVENTS, run * EVENTS).map((vehicle) => JSON.stringify(eventFor([vehicle])));
      const took = await burst(pair.toDaemon, pair.subscriber, bodies);
      await quiet(pair.daemon.pid);
      const floor = await burst(pair.toRelay, pair.subscriber, bodies);
      progress(`${name}: ${took.toFixed(0)} ms; floor ${floor.toFixed(0)} ms`);
      if (run < WARM_UP) continue;
      daemon.push(took);
      relay.push(floor);
    }
    figure(name, "ms", median(daemon), median(relay));
  }
};

/** The sender's connections are what holds it back: each takes the next event once it has its answer. */
async function burst(sender: Sender, subscriber: Subscriber, bodies: readonly string[]): Promise<number> {
  const all = subscriber.next(bodies.length);
  const began = performance.now();
  await Promise.all(bodies.map((body) => sender.post(body)));
  return lastOf(await all) - began;
}
