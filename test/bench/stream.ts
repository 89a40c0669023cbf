import { setTimeout as sleep } from "node:timers/promises";
import { request, type IncomingMessage } from "node:http";

import { Mosquitto } from "../support/mosquitto.ts";
import { Daemon } from "./daemon.ts";
import { benchDepot } from "./depot.ts";
import type { Measurement } from "./figure.ts";
import { CHARGERS, MEASURED_MS, SETTLE_MS, telemetryFor } from "./idle.ts";
import { cpuOf } from "./process.ts";

const CLIENTS = 50;

const percent = (used: number): number => (100 * used) / MEASURED_MS;

/** CPU and longest turn of a depot of 200 chargers with telemetry each 5 s, while 50 clients read the live stream. */
export const stream: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start();
  using depot = await benchDepot({ chargers: CHARGERS, broker: broker.url });
  await using daemon = await Daemon.start(depot, { watchTurns: true });
  await daemon.hasBroker();
  using telemetry = await telemetryFor(broker.url, depot.site);
  await sleep(SETTLE_MS);
  const alone = cpuOf(daemon.pid);
  await sleep(MEASURED_MS);
  const quiet = percent(cpuOf(daemon.pid) - alone);
  using clients = await readers(`${depot.operator}/api/v1/stream`);
  await sleep(SETTLE_MS);
  await daemon.longestTurn();
  const before = [cpuOf(daemon.pid), clients.events(), telemetry.sent()] as const;
  await sleep(MEASURED_MS);
  const { wall, cpu } = await daemon.longestTurn();
  const events = (clients.events() - before[1]) / CLIENTS;
  progress(
    `stream: ${telemetry.sent() - before[2]} messages, ${events} events for each of ${CLIENTS} clients`,
  );
  figure("stream.cpu", "%", percent(cpuOf(daemon.pid) - before[0]), quiet);
  figure("stream.longestTurn", "ms", wall);
  figure("stream.longestTurn.cpu", "ms CPU", cpu);
};

/** Clients that read the stream and count its events. */
async function readers(url: string) {
  let events = 0;
  const all = await Promise.all(
    Array.from({ length: CLIENTS }, () => {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      request(url, { agent: false }).on("response", resolve).on("error", reject).end();
      return promise;
    }),
  );
  for (const response of all)
    response.on("data", (chunk: Buffer) => (events += chunk.toString().split("\nevent: ").length - 1));
  return {
    events: () => events,
    [Symbol.dispose]() {
      for (const response of all) response.destroy();
    },
  };
}
