import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { stringify } from "yaml";

import {
  amperes,
  type ChargerId,
  chargerId,
  type Instant,
  instant,
  seconds,
} from "../../src/domain/units.ts";
import { SimulatedChargers } from "../../src/sim/chargers.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { Daemon } from "../bench/daemon.ts";
import { SECRET } from "../bench/depot.ts";
import { chance } from "../fuzz/chance.ts";
import { freePort } from "../support/freePort.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { type Sample, Sampler } from "./sample.ts";
import { Traffic } from "./traffic.ts";

export interface RealSoak {
  readonly minutes: number;
  readonly chargers: number;
  readonly seed: number;
  /** An event with each beat; outages every few. */
  readonly beatMs: number;
  readonly sampleMs: number;
  /** One sample of so many collects the daemon's garbage first. */
  readonly collectEvery: number;
  readonly onSample: (sample: Sample) => void;
  readonly progress: (words: string) => void;
}

export interface Soaked {
  readonly samples: readonly Sample[];
  readonly traffic: Traffic["count"];
  readonly reports: number;
  /** Commands that chargers were told. */
  readonly told: number;
}

const PROBE = new URL("heapProbe.ts", import.meta.url).href;
const SITE = "soak";
const PREFIX = "setpointd";
const TELEMETRY_EVERY = seconds(5);
const log = pino({ level: "silent" });
const now = (): Instant => instant(Date.now());

/** The real daemon with a real broker, a simulated partner and chargers that speak every 5 s, sampled until the time is up. */
export async function realSoak(plan: RealSoak): Promise<Soaked> {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "soak-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const broker = stack.use(await Mosquitto.start());
  const webhook = `http://127.0.0.1:${await freePort()}`;
  const partner = stack.use(await aPartner(webhook));
  const ids = Array.from({ length: plan.chargers }, (_, index) => chargerId(`bay-${index + 1}`));
  const depot = { ...(await configured(directory, { webhook, ids, broker, partner })), webhook };
  const chargers = stack.use(simulated(broker.url, ids));
  await chargers.whenOnline();
  const heap = join(directory, "heap");
  const daemon = stack.use(
    await Daemon.start(depot, { options: [`--import=${PROBE}`], env: { SOAK_HEAP: heap } }),
  );
  await daemon.hasBroker();
  plan.progress(`ready after ${Math.round(daemon.readyAfter)} ms, pid ${daemon.pid}, in ${directory}`);

  const { progress } = plan;
  const around = { partner, broker, chargers, ids, random: chance(plan.seed), progress };
  const traffic = new Traffic(around, plan.beatMs);
  const stop = new AbortController();
  const flowing = traffic.flow(stop.signal);
  const { operator, state } = depot;
  const sampler = new Sampler({
    pid: daemon.pid,
    operator,
    state,
    log: join(directory, "daemon.log"),
    heap,
  });
  const samples: Sample[] = [];
  const until = performance.now() + plan.minutes * 60_000;
  while (performance.now() < until) {
    await Promise.race([sleep(plan.sampleMs), flowing]);
    const sample = await sampler.sample(samples.length % plan.collectEvery === 0);
    samples.push(sample);
    plan.onSample(sample);
  }
  stop.abort();
  await flowing;
  const told = await daemon.metric('setpointd_publishes_total{outcome="acknowledged"');
  return { samples, traffic: traffic.count, reports: partner.reports.accepted.length, told };
}

const aPartner = (webhook: string): Promise<SimulatedPartner> =>
  SimulatedPartner.start({
    host: "127.0.0.1",
    port: 0,
    clientId: SITE,
    clientSecret: SECRET,
    webhook: { url: `${webhook}/webhooks/events`, secret: SECRET },
    now,
    log,
  });

const simulated = (url: string, ids: readonly ChargerId[]): SimulatedChargers =>
  SimulatedChargers.start({
    url,
    prefix: PREFIX,
    site: SITE,
    chargers: ids.map((id, index) => ({
      traits: {
        id,
        phases: 3,
        voltage: 230,
        minCurrent: amperes(6),
        maxCurrent: amperes(32),
        ownDefault: amperes(32),
        ramp: 8,
      },
      vehicle: {
        id: `veh-${index + 1}`,
        identity: null,
        maxCurrent: amperes(32),
        capacityWh: 1e7,
        soc: 10,
      },
    })),
    now,
    log,
    telemetryEvery: TELEMETRY_EVERY,
  });

interface Neighbours {
  readonly webhook: string;
  readonly ids: readonly ChargerId[];
  readonly broker: Mosquitto;
  readonly partner: SimulatedPartner;
}

/** Writes the configuration; nothing is started. */
async function configured(directory: string, { webhook, ids, broker, partner }: Neighbours) {
  const operator = `127.0.0.1:${await freePort()}`;
  const state = join(directory, "state");
  mkdirSync(state, { mode: 0o700 });
  const config = join(directory, "soak.yaml");
  const sections = {
    site: { id: SITE, timezone: "Europe/Oslo" },
    state,
    vtn: {
      baseUrl: partner.baseUrl,
      tokenUrl: partner.tokenUrl,
      clientId: SITE,
      clientSecret: { env: "SECRET" },
      pollEvery: "15s",
      prices: { regions: ["NO1"], cron: "* * * * *" },
    },
    webhook: { listen: new URL(webhook).host, auth: { hmac: { secret: { env: "SECRET" } } } },
    operator: { listen: operator },
    mqtt: { url: broker.url, prefix: PREFIX },
    report: { settleDelay: "5s" },
    chargers: ids.map((id) => ({ id, current: { min: 6, max: 32 } })),
    vehicles: ids.map((charger, index) => ({ id: `veh-${index + 1}`, charger })),
  };
  writeFileSync(config, stringify(sections));
  return { directory, config, state, site: SITE, operator: `http://${operator}` };
}
