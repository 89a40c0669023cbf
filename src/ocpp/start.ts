import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";

import { mqttClientId } from "../chargers/broker/address.ts";
import type { BrokerTiming } from "../chargers/broker/createClient.ts";
import type { OcppConfig } from "../config/ocpp.ts";
import type { Instant } from "../domain/units.ts";
import { RelayStore } from "./relayStore.ts";
import { StationServer } from "./server.ts";
import { Station } from "./station.ts";
import { StatusListener } from "./status.ts";
import { ocpp16 } from "./wire/ocpp16.ts";
import { ocpp201 } from "./wire/ocpp201.ts";

/** Clocks and random source. */
export interface OcppMachine {
  readonly now: () => Instant;
  readonly monotonic: () => number;
  readonly random: () => number;
  readonly randomBytes: (count: number) => Buffer;
  readonly log: Logger;
  readonly timing?: Partial<BrokerTiming>;
}

/** A running OCPP bridge. Its disposal stops it. */
export interface Bridge extends AsyncDisposable {
  readonly port: number;
  readonly statusPort: number;
  readonly stations: ReadonlyMap<string, Station>;
  /** Reads the certificate of the listener again, and logs the result. */
  readonly reload: () => void;
}

/** Starts the OCPP central system. Everything stops in the reverse order. */
export async function startOcpp(config: OcppConfig, machine: OcppMachine): Promise<Bridge> {
  await using stack = new AsyncDisposableStack();
  const { now, monotonic, random, randomBytes, log, timing } = machine;
  const key = bridgeKey(config.state, randomBytes);
  const prefix = randomBytes(4).toString("hex");
  let calls = 0;
  const ports = {
    now,
    random,
    log,
    nextId: () => `sp-${prefix}-${(calls += 1)}`,
    relayStore: config.upstream === null ? null : stack.use(new RelayStore(join(config.state, "relay.db"))),
    clientId: mqttClientId(`ocpp-${config.site}`, key),
    ...(timing === undefined ? {} : { timing }),
  };
  const stations = new Map(
    config.stations.map((entry) => [entry.identity, new Station(entry, config, ports)]),
  );
  stack.defer(async () => {
    await Promise.all([...stations.values()].map((station) => station.close()));
  });
  const server = stack.use(
    await StationServer.start({ config, stations, dialects: [ocpp201, ocpp16], monotonic, log }),
  );
  const status = stack.use(await StatusListener.start(config, stations, server, now));
  const started = stack.move();
  return {
    port: server.port,
    statusPort: status.port,
    stations,
    reload: () => server.reload(),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

const KEY_BYTES = 32;

/** Makes the MQTT client ids the same after a restart, and not to be guessed by a charger. */
function bridgeKey(state: string, randomBytes: (count: number) => Buffer): Buffer {
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const file = join(state, "ocpp.key");
  if (!existsSync(file)) writeFileSync(file, randomBytes(KEY_BYTES), { mode: 0o600, flag: "wx" });
  return readFileSync(file);
}
