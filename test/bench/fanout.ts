import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";

import { memoryGroup } from "../support/memoryGroup.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Side } from "./side.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, vehicles } from "./depot.ts";
import { type Measurement, median } from "./figure.ts";
import { eventFor, Sender } from "./partner.ts";
import { cpuOf, quiet, residentOf } from "./process.ts";
import { type Arrived, lastOf, Subscriber } from "./subscriber.ts";
import type { LongestTurn } from "./turnMonitor.ts";

const FLEET = 20_000;
const RUNS = 5;
/** Publishes in flight of the floor; 0: no limit. The fastest of them counts. */
const WINDOWS = [20, 500, 0];
/** The subscriber loses nothing that the broker cannot hand over at once. The broker allows a wide window (MQTT 5). */
export const NOTHING_DROPPED = ["max_queued_messages 0", "max_inflight_messages 1000"];

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
  /** The longest time that the event loop stood still, from the POST to the last outcome on disk. */
  readonly stall: LongestTurn;
  /** Bytes in memory after it. */
  readonly resident: number;
  readonly event: string;
  readonly body: string;
  readonly messages: readonly Arrived[];
}

/**
 * One webhook event for 20,000 vehicles, from the POST to the last message, over mqtt.js alone publishing the very
 * same messages to the very same subscriber.
 */
export const fanout20k: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using depot = await benchDepot({ chargers: FLEET, broker: broker.url });
  await using daemon = await Daemon.start(depot, { watchTurns: true });
  await using subscriber = await Subscriber.on(broker.url);
  await using sender = new Sender(depot.webhook, 1);
  await daemon.hasBroker();

  const cold = await runDaemon(daemon, sender, subscriber);
  progress(`fanout20k: first ${spoken(cold)}`);
  const file = recorded(depot, cold.messages);
  await using bare = await Side.start<number, number>("floor/publisher", [broker.url, file]);
  await using committer = await Side.start<number, readonly string[]>("floor/committer", [depot.directory]);
  const coldFloor = await runFloor(bare, subscriber, WINDOWS[0] ?? 0);
  progress(`fanout20k: first floor ${coldFloor.toFixed(0)} ms`);

  const runs: Run[] = [];
  const floors = WINDOWS.map((): number[] => []);
  const [commits, eventCommits]: [number[], number[]] = [[], []];
  while (runs.length < RUNS) {
    const run = await runDaemon(daemon, sender, subscriber);
    runs.push(run);
    for (const [index, window] of WINDOWS.entries())
      floors[index]?.push(await runFloor(bare, subscriber, window));
    const rows = await decisions(depot, run.event);
    eventCommits.push(await committer.order([run.body]));
    commits.push(await committer.order([run.body, ...rows]));
    progress(
      `fanout20k: ${spoken(run)}; floors ${floors.map((times) => times.at(-1)?.toFixed(0)).join(", ")} ms`,
    );
  }
  const floor = Math.min(...floors.map(median));
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
    median(commits),
  );
  figure(
    "fanout20k.answered.eventOnly",
    "ms",
    of(({ answered }) => answered),
    median(eventCommits),
  );
  figure(
    "fanout20k.stall",
    "ms",
    of(({ stall }) => stall.wall),
  );
  figure(
    "fanout20k.stall.cpu",
    "ms CPU",
    of(({ stall }) => stall.cpu),
  );
  figure("fanout20k.resident", "MB", Math.max(...runs.map(({ resident }) => resident)) / 1e6);
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

/** As the unit sets it. */
const MEMORY_MAX = 512 * 1024 * 1024;

/** The same event under the memory limit of the unit, where V8 has a third of the heap. Needs to make a cgroup. */
export const fanout20kLimited: Measurement = async ({ figure, progress }) => {
  using group = memoryGroup(`bench-${process.pid}`, MEMORY_MAX);
  if (group === null) {
    progress("fanout20kLimited: left out, as this machine lets no group of processes be made");
    return;
  }
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using depot = await benchDepot({ chargers: FLEET, broker: broker.url });
  await using daemon = await Daemon.start(depot, { watchTurns: true, within: group.within });
  await using subscriber = await Subscriber.on(broker.url);
  await using sender = new Sender(depot.webhook, 1);
  await daemon.hasBroker();
  const runs: Run[] = [];
  while (runs.length < RUNS) {
    const run = await runDaemon(daemon, sender, subscriber);
    runs.push(run);
    progress(`fanout20kLimited: ${spoken(run)}`);
  }
  figure("fanout20kLimited", "ms", median(runs.map(({ arrived }) => arrived)));
  figure("fanout20kLimited.cpu", "ms", median(runs.map(({ cpu }) => cpu)));
  figure("fanout20kLimited.resident", "MB", Math.max(...runs.map(({ resident }) => resident)) / 1e6);
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
  await daemon.longestTurn();
  const all = subscriber.next(FLEET);
  const began = performance.now();
  await sender.post(body);
  const answered = performance.now() - began;
  const messages = await all;
  const arrived = lastOf(messages) - began;
  let stall = await daemon.longestTurn();
  const after = await waitFor(async () => {
    const turn = await daemon.longestTurn();
    stall = { wall: Math.max(stall.wall, turn.wall), cpu: Math.max(stall.cpu, turn.cpu) };
    const now = await counters();
    // The scrapes are ours.
    await daemon.longestTurn();
    return now.outcomes >= before.outcomes + FLEET ? now : null;
  });
  const run: Run = {
    answered,
    arrived,
    recorded: performance.now() - began,
    committing: after.committing - before.committing,
    cpu: cpuOf(daemon.pid) - cpu,
    stall,
    resident: residentOf(daemon.pid),
    event: event.ID,
    body,
    messages,
  };
  const released = subscriber.next(FLEET);
  await sender.withdraw(event);
  await released;
  await quiet(daemon.pid);
  return run;
}

/** The rows of its decisions, as the daemon shows them. */
async function decisions({ operator }: BenchDepot, event: string): Promise<readonly string[]> {
  const rows: { readonly seq: number; readonly kind: string }[] = [];
  for (let page = rows, after = 0; after === 0 || page.length > 0; after = page.at(-1)?.seq ?? after) {
    const { body } = await request(`${operator}/api/v1/audit?event=${event}&after=${after}&limit=1000`);
    page = (await body.json()) as typeof rows;
    rows.push(...page);
  }
  return rows
    .filter(({ kind }) => kind === "decision")
    .slice(0, FLEET)
    .map((row) => JSON.stringify(row));
}

async function runFloor(bare: Side<number, number>, subscriber: Subscriber, window: number): Promise<number> {
  const all = subscriber.next(FLEET);
  const began = performance.now();
  await bare.order(window);
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

const spoken = ({ answered, arrived, recorded, committing, cpu, stall, resident }: Run): string =>
  `stall ${stall.wall.toFixed(0)} ms (${stall.cpu.toFixed(0)} ms CPU), ${(resident / 1e6).toFixed(0)} MB; 202 after ${answered.toFixed(0)} ms, last message ${arrived.toFixed(0)} ms, outcomes on disk ${recorded.toFixed(0)} ms; ${committing.toFixed(0)} ms in commits, ${cpu} ms CPU`;
