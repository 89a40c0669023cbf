import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { fractionOf, startOffset } from "../../src/control/schedule/expand.ts";
import { after, instant, millis, vehicleId } from "../../src/domain/units.ts";
import type { WireEvent } from "../../src/sim/events.ts";
import { readEvent } from "../../src/vtn/dialects/partner/event.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, scratchDirectory, vehicles } from "./depot.ts";
import { NOTHING_DROPPED } from "./fanout.ts";
import { type Measurement, median, quantile, type Report } from "./figure.ts";
import type { ListPartner } from "./listPartner.ts";
import { eventFor, now, Sender } from "./partner.ts";
import { quiet, residentOf } from "./process.ts";
import { Side } from "./side.ts";
import { Subscriber } from "./subscriber.ts";

const FLEET = 10_000;
const EVENTS = 100;
const HOUR = 3_600_000;
/** V8 gives memory back some time after a program has become idle. */
const GC_PAUSE_MS = 60_000;
const SPREAD_MS = 60_000;
/** A list may be 16 MiB. */
const LARGEST_LIST = 16 * 1024 * 1024;

/**
 * A million future dispatches from one list: resident bytes of each, and how late 10,000 more start that fall due
 * within a minute meanwhile: undisturbed, and with the whole list being fetched again in that minute.
 */
export const pending: Measurement = async (report) => {
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using scratch = scratchDirectory();
  const file = join(scratch.path, "list.json");
  writeFileSync(file, "[]");
  await using partner = await Side.start<ListPartner>("listPartner", [file]);
  using depot = await benchDepot({ chargers: FLEET, broker: broker.url, partner: partner.ready.url });
  await using daemon = await Daemon.start(depot);
  await using sender = new Sender(depot.webhook, 1);
  await using subscriber = await Subscriber.on(broker.url);
  await daemon.hasBroker();
  await sleep(GC_PAUSE_MS);
  const empty = residentOf(daemon.pid);

  const events = future();
  const list = JSON.stringify(events);
  if (list.length > LARGEST_LIST) throw new Error(`a list of ${list.length} bytes would be refused`);
  writeFileSync(file, list);
  await partner.order("go");
  await sender.hint();
  await waitFor(async () => (await daemon.metric("setpointd_dispatches")) === FLEET * EVENTS, {
    timeoutMs: 120_000,
    everyMs: 500,
  });
  const loaded = residentOf(daemon.pid);
  await sleep(GC_PAUSE_MS);
  const settled = residentOf(daemon.pid);
  report.progress(
    `pending: ${[empty, loaded, settled].map((bytes) => `${(bytes / 1e6).toFixed(0)} MB`).join(", ")} resident without any, as they had come, and a minute later`,
  );
  report.figure("pending.bytes", "bytes/dispatch", (settled - empty) / (FLEET * EVENTS));
  report.figure("pending.bytesAtOnce", "bytes/dispatch", (loaded - empty) / (FLEET * EVENTS));

  for (const name of ["pending.lateness", "pending.latenessPolled"]) {
    events.push(
      eventFor(vehicles(FLEET), { start: after(now(), millis(10_000)), randomizeStartMs: SPREAD_MS }),
    );
    writeFileSync(file, JSON.stringify(events));
    const { last } = await partner.order("go");
    if (last === undefined) throw new Error("the partner lost the event");
    const all = subscriber.next(FLEET);
    await sender.post(JSON.stringify(last));
    if (name === "pending.latenessPolled") setTimeout(() => void sender.hint(), SPREAD_MS / 2);
    // Each scrape starts the longest stall over.
    await daemon.metric("setpointd_loop_stall_seconds");
    const messages = await all;
    const stall = (await daemon.metric("setpointd_loop_stall_seconds")) * 1000;
    report.progress(`${name}: the daemon's loop stood still for at most ${stall.toFixed(0)} ms`);
    tell(report, name, latenessOf(depot, last, messages));
    await quiet(daemon.pid);
  }
};

/** Half an hour for everyone at each hour of a hundred, from tomorrow on. */
const future = (): WireEvent[] =>
  Array.from({ length: EVENTS }, (_, index) => {
    const start = after(now(), millis((24 + index) * HOUR));
    return eventFor(vehicles(FLEET), { start, durationMs: HOUR / 2, randomizeStartMs: HOUR / 6 });
  });

function tell({ figure }: Report, name: string, lateness: readonly number[]): void {
  figure(`${name}.p99`, "ms", quantile(lateness, 0.99));
  figure(`${name}.median`, "ms", median(lateness));
  figure(`${name}.max`, "ms", quantile(lateness, 1));
}

/** How long after its own moment (DESIGN 5.3) each setpoint of an event came, in ms. */
function latenessOf(
  { state }: BenchDepot,
  wire: WireEvent,
  messages: Awaited<ReturnType<Subscriber["next"]>>,
): readonly number[] {
  const read = readEvent(wire);
  if (read.kind !== "event") throw new Error(read.reason);
  const siteKey = readFileSync(join(state, "site.key"));
  return messages.map(({ topic, at }) => {
    const vehicle = vehicleId(`v${/\/c(\d+)\/set$/.exec(topic)?.[1]}`);
    const offset = startOffset(fractionOf(siteKey, read.event, vehicle), millis(SPREAD_MS));
    return performance.timeOrigin + at - after(instant(Date.parse(wire.intervalPeriod.start)), offset);
  });
}
