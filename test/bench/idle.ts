import { setTimeout as sleep } from "node:timers/promises";
import { connectAsync } from "mqtt";

import { nativeTopics, writeTelemetry } from "../../src/chargers/native/messages.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { Side } from "./side.ts";
import { Daemon } from "./daemon.ts";
import { benchDepot } from "./depot.ts";
import type { Measurement } from "./figure.ts";
import { now } from "./partner.ts";
import { cpuOf, residentOf } from "./process.ts";

export const CHARGERS = 200;
const TELEMETRY_EVERY_MS = 5_000;
export const MEASURED_MS = 60_000;
/** First messages, first states and the work of the compiler are not idleness. */
export const SETTLE_MS = 20_000;

/** Memory and CPU of a depot where nothing happens but telemetry, over a program that only parses the telemetry. */
export const idle: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start();
  using depot = await benchDepot({ chargers: CHARGERS, broker: broker.url });
  await using daemon = await Daemon.start(depot);
  await using bare = await Side.start("floor/listener", [broker.url]);
  await daemon.hasBroker();
  using telemetry = await telemetryFor(broker.url, depot.site);
  await sleep(SETTLE_MS);
  const before = [cpuOf(daemon.pid), cpuOf(bare.pid), telemetry.sent()] as const;
  await sleep(MEASURED_MS);
  const percent = (used: number): number => (100 * used) / MEASURED_MS;
  progress(`idle: ${telemetry.sent() - before[2]} messages in a minute`);
  figure("idle.cpu", "%", percent(cpuOf(daemon.pid) - before[0]), percent(cpuOf(bare.pid) - before[1]));
  figure("idle.resident", "MB", residentOf(daemon.pid) / 1e6, residentOf(bare.pid) / 1e6);
};

/** Speaks for all chargers over one connection, evenly spread, until disposed of. */
export async function telemetryFor(broker: string, site: string) {
  const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });
  const topics = Array.from(
    { length: CHARGERS },
    (_, id) => nativeTopics("setpointd", site, `c${id}`)?.telemetry,
  );
  let sent = 0;
  const speaking = setInterval(() => {
    const reading = { at: now(), state: "charging", powerW: 7000 + (sent % 100), energyWh: sent } as const;
    const electric = { currentsA: [10.1, 10.2, 10.1], voltagesV: [230, 231, 229], limitA: 32, soc: 50 };
    client.publish(topics[sent % CHARGERS] ?? "", writeTelemetry({ ...reading, ...electric }));
    sent += 1;
  }, TELEMETRY_EVERY_MS / CHARGERS);
  return {
    sent: () => sent,
    [Symbol.dispose]() {
      clearInterval(speaking);
      client.end(true);
    },
  };
}
