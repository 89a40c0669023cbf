import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { EventPlan } from "../../src/sim/events.ts";
import { after, millis } from "../../src/domain/units.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, scratchDirectory, vehicles } from "./depot.ts";
import { NOTHING_DROPPED } from "./fanout.ts";
import type { Measurement, Report } from "./figure.ts";
import type { ListPartner } from "./listPartner.ts";
import { eventFor, now, Sender } from "./partner.ts";
import { quiet } from "./process.ts";
import { Side } from "./side.ts";
import { Subscriber } from "./subscriber.ts";

const FLEET = 20_000;
const LISTED = 10_000;
const SHORT_MS = 8_000;
const TOMORROW = millis(86_400_000);

/** The longest turn of the event loop in everything that touches 20,000 vehicles at once, without and with a ramp. */
export const turns20k: Measurement = async (report) => {
  await measure(report, "turns20k", "");
  await measure(report, "turns20k.ramp", "releaseRamp: { current: 1000000 }");
};

/** A daemon and how it is reached. */
interface Bench {
  readonly daemon: Daemon;
  readonly sender: Sender;
  readonly subscriber: Subscriber;
  readonly step: (name: string, act: () => Promise<unknown>) => Promise<void>;
}

async function measure({ figure, progress }: Report, prefix: string, control: string): Promise<void> {
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using scratch = scratchDirectory();
  const file = join(scratch.path, "list.json");
  writeFileSync(file, "[]");
  await using partner = await Side.start<ListPartner>("listPartner", [file]);
  const wish = { chargers: FLEET, broker: broker.url, partner: partner.ready.url, control };
  using depot: BenchDepot = await benchDepot(wish);
  await using daemon = await Daemon.start(depot, { watchTurns: true });
  await using sender = new Sender(depot.webhook, 1);
  const step = async (name: string, act: () => Promise<unknown>): Promise<void> => {
    await quiet(daemon.pid);
    await daemon.longestTurn();
    await act();
    await quiet(daemon.pid);
    const { wall, cpu } = await daemon.longestTurn();
    progress(`${prefix}.${name}: ${wall.toFixed(0)} ms, ${cpu.toFixed(0)} ms CPU`);
    figure(`${prefix}.${name}`, "ms CPU", cpu);
  };
  {
    await using subscriber = await Subscriber.on(broker.url);
    await daemon.hasBroker();
    const bench = { daemon, sender, subscriber, step };
    await eventLife(bench, "first");
    await eventLife(bench, "second");
  }
  await step("list", async () => {
    const listed = Array.from({ length: LISTED }, (_, index) =>
      eventFor(vehicles(1, index), { start: after(now(), TOMORROW) }),
    );
    writeFileSync(file, JSON.stringify(listed));
    await partner.order("go");
    const known = await daemon.metric("setpointd_dispatches");
    await sender.hint();
    const all = async (): Promise<boolean> => (await daemon.metric("setpointd_dispatches")) >= known + LISTED;
    await waitFor(all, { timeoutMs: 60_000, everyMs: 1_000 });
  });
  await step("scrape", () => daemon.metric("setpointd_broker_up"));
  await step("brokerReturn", async () => {
    await broker.kill();
    await broker.start();
    await daemon.hasBroker();
  });
}

/** From its publication to its end. */
async function eventLife({ sender, subscriber, step }: Bench, run: string): Promise<void> {
  const fleet = vehicles(FLEET);
  const start = now();
  let event = eventFor(fleet, { start });
  const edited = (plan: Partial<EventPlan>): void => {
    event = eventFor(fleet, { id: event.ID, start, ...plan });
  };
  const post = async (): Promise<void> => {
    const all = subscriber.next(FLEET);
    await sender.post(JSON.stringify(event));
    await all;
  };
  await step(`${run}.event`, post);
  for (const amperes of [9, 8]) {
    edited({ ask: { amperes } });
    await step(`${run}.edit`, post);
  }
  edited({ vehicles: fleet.slice(FLEET / 2) });
  await step(`${run}.halved`, async () => {
    const half = subscriber.next(FLEET / 2);
    await sender.post(JSON.stringify(event));
    await half;
  });
  await step(`${run}.withdrawn`, async () => {
    const half = subscriber.next(FLEET / 2);
    await sender.withdraw(event);
    await half;
  });
  event = eventFor(fleet, { start: now(), durationMs: SHORT_MS });
  await step(`${run}.ended`, async () => {
    await post();
    await subscriber.next(FLEET);
  });
}
