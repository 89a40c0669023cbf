import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";

import { fractionOf, startOffset } from "../../src/core/control/startOffset.ts";
import { after, instant, millis, vehicleId } from "../../src/core/units.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { readEvent } from "../../src/vtn/wire/event.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, SECRET, vehicles } from "./depot.ts";
import { type Measurement, median, quantile } from "./figure.ts";
import { eventFor, now, Sender } from "./partner.ts";
import { quiet, residentOf } from "./process.ts";
import { type Arrived, Subscriber } from "./subscriber.ts";

const FLEET = 10_000;
const EVENTS = 100;
const HOUR = 3_600_000;
/** V8 gives memory back some time after a program has become idle. */
const GC_PAUSE_MS = 60_000;
const SPREAD_MS = 60_000;

/**
 * A million future dispatches: resident bytes of each, and how late 10,000 more start that fall due within a minute
 * meanwhile. The lists are as large as they may be; what is measured is the same daemon with an empty list before.
 */
export const pending: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start({ extra: ["max_queued_messages 0"] });
  await using partner = await SimulatedPartner.start({
    host: "127.0.0.1",
    port: 0,
    clientId: "bench",
    clientSecret: SECRET,
    webhook: null,
    now,
    log: pino({ level: "silent" }),
  });
  const wish = { chargers: FLEET, broker: broker.url, partner: partner.baseUrl, pollEvery: "5s" };
  using depot = await benchDepot(wish);
  await using daemon = await Daemon.start(depot);
  await daemon.hasBroker();
  await sleep(GC_PAUSE_MS);
  const empty = residentOf(daemon.pid);
  progress(`pending: ${megabytes(empty)} without any`);

  for (let index = 0; index < EVENTS; index += 1) {
    const start = after(now(), millis((24 + index) * HOUR));
    partner.put(eventFor(vehicles(FLEET), { start, durationMs: HOUR / 2, randomizeStartMs: HOUR / 6 }));
  }
  await waitFor(async () => (await daemon.metric("setpointd_dispatches")) === FLEET * EVENTS, {
    timeoutMs: 120_000,
    everyMs: 500,
  });
  const loaded = residentOf(daemon.pid);
  await sleep(GC_PAUSE_MS);
  const settled = residentOf(daemon.pid);
  progress(`pending: ${megabytes(loaded)} when they had come, ${megabytes(settled)} a minute later`);
  figure("pending.bytes", "bytes/dispatch", (settled - empty) / (FLEET * EVENTS));
  figure("pending.bytesAtOnce", "bytes/dispatch", (loaded - empty) / (FLEET * EVENTS));

  const lateness = await latenessOf(depot, broker.url);
  figure("pending.lateness.p99", "ms", quantile(lateness, 0.99));
  figure("pending.lateness.median", "ms", median(lateness));
  figure("pending.lateness.max", "ms", quantile(lateness, 1));
  await quiet(daemon.pid);
};

/** One event for everyone, spread over a minute: how long after its own moment each setpoint came, in ms. */
async function latenessOf(depot: BenchDepot, broker: string): Promise<readonly number[]> {
  await using subscriber = await Subscriber.on(broker);
  await using sender = new Sender(depot.webhook, 1);
  const start = after(now(), millis(5_000));
  const wire = eventFor(vehicles(FLEET), { start, randomizeStartMs: SPREAD_MS });
  const read = readEvent(wire);
  if (read.kind !== "event") throw new Error(read.reason);
  const siteKey = readFileSync(join(depot.state, "site.key"));
  const all = subscriber.next(FLEET);
  await sender.post(JSON.stringify(wire));
  return (await all).map(({ topic, at }: Arrived) => {
    const vehicle = vehicleId(`v${/\/c(\d+)\/set$/.exec(topic)?.[1]}`);
    const offset = startOffset(fractionOf(siteKey, read.event, vehicle), millis(SPREAD_MS));
    return performance.timeOrigin + at - after(instant(start), offset);
  });
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
