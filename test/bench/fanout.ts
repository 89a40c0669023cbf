import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Side } from "./side.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, vehicles } from "./depot.ts";
import { type Measurement, median } from "./figure.ts";
import { eventFor, Sender } from "./partner.ts";
import { cpuOf, quiet } from "./process.ts";
import { type Arrived, lastOf, Subscriber } from "./subscriber.ts";

const FLEET = 20_000;
const RUNS = 5;
const WINDOW = 20;
/** The subscriber must not lose what the broker cannot hand over at once. */
export const NOTHING_DROPPED = ["max_queued_messages 0"];

/** One event on its way through the daemon; times in ms since the POST. */
interface Run {
  /** 202: event and 20,000 decisions are on disk. */
  readonly answered: number;
  /** The last message is at the subscriber. */
  readonly arrived: number;
  /** The last of the outcomes is on disk as well. */
  readonly recorded: number;
  /** What the commits of that took, the loop standing still meanwhile. */
  readonly committing: number;
  readonly cpu: number;
  readonly messages: readonly Arrived[];
}

/**
 * One webhook event for 20,000 vehicles, from the POST to the last message, over mqtt.js alone publishing the very
 * same messages to the very same subscriber.
 */
export const fanout20k: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using depot = await benchDepot({ chargers: FLEET, broker: broker.url });
  await using daemon = await Daemon.start(depot);
  await using subscriber = await Subscriber.on(broker.url);
  await using sender = new Sender(depot.webhook, 1);
  await daemon.hasBroker();

  const cold = await runDaemon(daemon, sender, subscriber);
  progress(`fanout20k: first ${spoken(cold)}`);
  const file = recorded(depot, cold.messages);
  await using bare = await Side.start<number>("floor/publisher", [broker.url, file, String(WINDOW)]);
  const coldFloor = await runFloor(bare, subscriber);
  progress(`fanout20k: first floor ${coldFloor.toFixed(0)} ms`);

  const [runs, floors]: [Run[], number[]] = [[], []];
  while (runs.length < RUNS) {
    const run = await runDaemon(daemon, sender, subscriber);
    const floor = await runFloor(bare, subscriber);
    runs.push(run);
    floors.push(floor);
    progress(`fanout20k: ${spoken(run)}; floor ${floor.toFixed(0)} ms`);
  }
  const floor = median(floors);
  const of = (part: (run: Run) => number): number => median(runs.map(part));
  figure(
    "fanout20k",
    "ms",
    of(({ arrived }) => arrived),
    floor,
  );
  figure("fanout20k.first", "ms", cold.arrived, coldFloor);
  figure(
    "fanout20k.answered",
    "ms",
    of(({ answered }) => answered),
  );
  figure(
    "fanout20k.publishing",
    "ms",
    of(({ arrived, answered }) => arrived - answered),
    floor,
  );
  figure(
    "fanout20k.outcomesCommitted",
    "ms",
    of(({ recorded }) => recorded),
    floor,
  );
  figure(
    "fanout20k.inCommits",
    "ms",
    of(({ committing }) => committing),
  );
  figure(
    "fanout20k.cpu",
    "ms",
    of(({ cpu }) => cpu),
  );
};

/** Posts an event for everyone, then takes it back, so that every run finds the same depot. */
async function runDaemon(daemon: Daemon, sender: Sender, subscriber: Subscriber): Promise<Run> {
  const counters = async () => ({
    outcomes: await daemon.metric('setpointd_audit_rows_total{kind="outcome"'),
    committing: (await daemon.metric("setpointd_commit_duration_seconds_sum")) * 1000,
  });
  const event = eventFor(vehicles(FLEET));
  const body = JSON.stringify(event);
  const [before, cpu] = [await counters(), cpuOf(daemon.pid)];
  const all = subscriber.next(FLEET);
  const began = performance.now();
  await sender.post(body);
  const answered = performance.now() - began;
  const messages = await all;
  const arrived = lastOf(messages) - began;
  const after = await waitFor(async () => {
    const now = await counters();
    return now.outcomes >= before.outcomes + FLEET ? now : null;
  });
  const run: Run = {
    answered,
    arrived,
    recorded: performance.now() - began,
    committing: after.committing - before.committing,
    cpu: cpuOf(daemon.pid) - cpu,
    messages,
  };
  const released = subscriber.next(FLEET);
  await sender.withdraw(event);
  await released;
  await quiet(daemon.pid);
  return run;
}

async function runFloor(bare: Side<number>, subscriber: Subscriber): Promise<number> {
  const all = subscriber.next(FLEET);
  const began = performance.now();
  await bare.order();
  return Math.max(lastOf(await all), performance.now()) - began;
}

/** What the daemon sent, for the floor to send again. */
function recorded(depot: BenchDepot, messages: readonly Arrived[]): string {
  const file = join(depot.directory, "messages.json");
  const lines = messages.map(({ topic, payload, expiry }) => ({
    topic,
    payload: payload.toString(),
    expiry,
  }));
  writeFileSync(file, JSON.stringify(lines));
  return file;
}

const spoken = ({ answered, arrived, recorded, committing, cpu }: Run): string =>
  `202 after ${answered.toFixed(0)} ms, last message ${arrived.toFixed(0)} ms, outcomes on disk ${recorded.toFixed(0)} ms; ${committing.toFixed(0)} ms in commits, ${cpu} ms CPU`;
