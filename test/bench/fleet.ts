import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connectAsync } from "mqtt";
import { Client } from "pg";
import { pino } from "pino";
import { stringify } from "yaml";

import { NATIVE_ONLY } from "../../src/config/checks.ts";
import { loadFleet, storedSite } from "../../src/config/fleet.ts";
import { SiteFiles } from "../../src/daemon/fleet/siteFiles.ts";
import { instant } from "../../src/domain/units.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { Daemon } from "../support/aDaemon.ts";
import { anEvent } from "../support/aSite.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { Postgres } from "../support/postgres.ts";
import { waitFor } from "../support/waitFor.ts";
import type { Measurement, Report } from "./figure.ts";
import { Subscriber } from "./subscriber.ts";

const SECRET = "a secret of the bench, long enough";
/** Vehicles of one delivery: 1 MiB is the most. */
const IN_ONE = 1_000;
const PATIENCE_MS = 1_800_000;
/** Longer than the event takes for 10,000 sites: repeats are not part of its figures. */
const REFRESH = "30m";
/** Length of a charger's state under the event. */
const STATE_BYTES = 520;
/** Sites for each one whose states are counted. */
const STATES_OF = 10;

const { values: size } = parseArgs({
  options: {
    sites: { type: "string", default: "100" },
    vehicles: { type: "string", default: "100" },
    lease: { type: "string", default: "10s" },
  },
  strict: false,
});
const SITES = Number(size.sites);
const VEHICLES = Number(size.vehicles);

const name = (site: number): string => `s${String(site).padStart(5, "0")}`;
const each = <T>(count: number, made: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => made(index));

const siteFile = (site: number): object => ({
  site: { id: name(site), timezone: "UTC" },
  control: { refresh: REFRESH },
  chargers: each(VEHICLES, (index) => ({ id: `c${index}`, current: { min: 6, max: 32 } })),
  vehicles: each(VEHICLES, (index) => ({ id: `${name(site)}-v${index}`, charger: `c${index}` })),
});

/** Files, servers and processes of the fleet. */
async function aFleet(stack: AsyncDisposableStack) {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-fleet-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  // Durable, as in earnest. The memory is that of a small server.
  const cluster = stack.use(
    await Postgres.start({ fsync: "on", shared_buffers: "1GB", max_wal_size: "4GB", max_connections: 100 }),
  );
  const broker = stack.use(await Mosquitto.start({ extra: ["max_queued_messages 0"] }));
  const partner = stack.use(
    await SimulatedPartner.start({
      host: "127.0.0.1",
      port: 0,
      clientId: "fleet",
      clientSecret: SECRET,
      webhook: null,
      now: () => instant(Date.now()),
      log: pino({ level: "silent" }),
    }),
  );
  const write = (file: string, text: string): void =>
    writeFileSync(join(directory, file), text, { mode: 0o600 });
  write("database-url", cluster.url);
  write("site-keys", randomBytes(32).toString("base64"));
  write("secret", SECRET);
  const configure = (worker: string): string => {
    mkdirSync(join(directory, worker), { mode: 0o700 });
    write(
      `${worker}.yaml`,
      stringify({
        state: {
          folder: `./${worker}`,
          postgres: { url: { file: "database-url" }, siteKeys: { file: "site-keys" }, lease: size.lease },
        },
        vtn: {
          baseUrl: partner.baseUrl,
          tokenUrl: partner.tokenUrl,
          clientId: "fleet",
          clientSecret: { file: "secret" },
          pollEvery: "1h",
        },
        webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { file: "secret" } } } },
        operator: { listen: "127.0.0.1:0" },
        mqtt: { url: broker.url },
      }),
    );
    return join(directory, `${worker}.yaml`);
  };
  return { cluster, broker, partner, configure };
}

async function putSites(config: string): Promise<void> {
  const loaded = loadFleet(config, {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.mistakes));
  const { fleet } = loaded;
  await using sites = await opened(
    SiteFiles.open(fleet, { now: () => instant(Date.now()), randomBytes, log: pino({ level: "silent" }) }),
  );
  for (let from = 0; from < SITES; from += 100) {
    const files = each(Math.min(100, SITES - from), (index) => siteFile(from + index));
    const read = files.map((file) => ({ file: "", loaded: storedSite(fleet, file, NATIVE_ONLY) }));
    const refused = await sites.put(read);
    if (refused.length > 0) throw new Error(JSON.stringify(refused[0]));
  }
}

async function opened(open: Promise<SiteFiles | string>): Promise<SiteFiles> {
  const sites = await open;
  if (typeof sites === "string") throw new Error(sites);
  return sites;
}

/** The growth of the launcher. Collects all garbage at SIGUSR2, and writes what is left to stderr. */
const COLLECTS = `
  import v8 from "node:v8";
  import vm from "node:vm";
  v8.setFlagsFromString("--heap-growing-percent=100");
  v8.setFlagsFromString("--expose-gc");
  const gc = vm.runInNewContext("gc");
  process.on("SIGUSR2", () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    process.stderr.write("left " + (heapUsed + external) + ".");
  });`;
/** The nursery of the launcher. The heap of the worker that leads all sites in the end exceeds the limit of V8. */
const HEAP = "--max-semi-space-size=128 --max-old-space-size=12000";
const WORKER = { NODE_OPTIONS: `${HEAP} --import=data:text/javascript,${encodeURIComponent(COLLECTS)}` };

/** Bytes in use after a full collection. */
const leftIn = async (worker: Daemon): Promise<number> => {
  const before = worker.errors.length;
  worker.signal("SIGUSR2");
  const left = await waitFor(() => /left (\d+)\./.exec(worker.errors.slice(before)), { timeoutMs: 120_000 });
  return Number(left[1]);
};

const readyAt = async (worker: Daemon): Promise<number> => {
  const { json } = await worker.get("/api/v1/sites").catch(() => ({ json: null }));
  // A busy database refuses the list at times.
  if (!Array.isArray(json)) return 0;
  const rows: readonly { self: boolean; ready: boolean | null }[] = json;
  return rows.filter(({ self, ready }) => self && ready === true).length;
};
const allReady = (workers: readonly Daemon[]): Promise<unknown> =>
  waitFor(async () => (await Promise.all(workers.map(readyAt))).reduce((a, b) => a + b, 0) === SITES, {
    timeoutMs: PATIENCE_MS,
    // The list of 10,000 sites costs each worker half a second.
    everyMs: Math.max(500, SITES),
  });

/** Processor time of the workers for each site in a second, ms, as measured over ten. */
async function processorMs(workers: readonly Daemon[]): Promise<number> {
  const spent = (): number => workers.reduce((sum, worker) => sum + worker.processorMs, 0);
  const before = spent();
  await sleep(10_000);
  return (spent() - before) / 10 / SITES;
}

const percentile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? NaN;

/** Messages that the workers publish for the event: one command for each vehicle, and the states that follow. */
interface Published {
  readonly command: Buffer;
  readonly states: number;
}

/**
 * The same rows with COPY, and the same publishes with mqtt.js: what the machine can do at best. Each alone, and both at
 * once, as the event needs them.
 */
async function floors(
  cluster: Postgres,
  broker: string,
  published: Published,
  { figure }: Report,
): Promise<void> {
  const client = new Client(cluster.url);
  await client.connect();
  const copies = ["audit", "body"].map((table) => ({ table, file: join(cluster.folder, `${table}.copy`) }));
  for (const { table, file } of copies) await client.query(`COPY setpointd.${table} TO '${file}'`);
  const copyAll = async (): Promise<void> => {
    for (const { table, file } of copies) {
      await client.query(`CREATE TABLE floor_${table} (LIKE setpointd.${table} INCLUDING ALL)`);
      await client.query(`COPY floor_${table} FROM '${file}'`);
      await client.query(`DROP TABLE floor_${table}`);
    }
  };
  const state = Buffer.alloc(STATE_BYTES, "s");
  const publishSame = async (): Promise<void> => {
    await Promise.all([
      publishAll(broker, topics(SITES * VEHICLES, "set"), published.command, false),
      publishAll(broker, topics(published.states, "state"), state, true),
    ]);
  };
  figure("fleet: floor, the same rows by COPY", "ms", await timed(copyAll));
  figure("fleet: floor, the same publishes by mqtt.js", "ms", await timed(publishSame));
  figure("fleet: floor, both at once", "ms", await timed(() => Promise.all([copyAll(), publishSame()])));
  await client.end();
}

const topics = (count: number, what: "set" | "state"): readonly string[] =>
  each(count, (index) => `setpointd/floor/chargers/c${index}/${what}`);

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Counts the states that are published, at one site in `STATES_OF`: to receive them all would slow the broker down. */
async function countStates(broker: string): Promise<() => Promise<number>> {
  const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });
  const heard = each(Math.ceil(SITES / STATES_OF), (index) => name(index * STATES_OF));
  let count = 0;
  client.on("message", () => (count += 1));
  for (const site of heard) {
    await client.subscribeAsync(`setpointd/${site}/chargers/+/state`, { qos: 0, rh: 2 });
  }
  return async () => {
    await client.endAsync(true);
    return Math.round((count * SITES) / heard.length);
  };
}

const databaseBytes = async (cluster: Postgres): Promise<number> => {
  const client = new Client(cluster.url);
  await client.connect();
  const { rows } = await client.query<{ bytes: string }>(
    "SELECT pg_database_size(current_database()) AS bytes",
  );
  await client.end();
  return Number(rows[0]?.bytes);
};

/** A window of publishes with mqtt.js, as wide as the broker takes it. */
async function publishAll(
  broker: string,
  topics: readonly string[],
  payload: Buffer,
  retain: boolean,
): Promise<void> {
  const publisher = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });
  const queue = topics.values();
  const worker = async (): Promise<void> => {
    for (const topic of queue) await publisher.publishAsync(topic, payload, { qos: 1, retain });
  };
  await Promise.all(each(1_000, worker));
  await publisher.endAsync();
}

/** Every charger is online, as its retained message says. */
const allOnline = (broker: string): Promise<void> =>
  publishAll(
    broker,
    each(SITES, (site) =>
      each(VEHICLES, (index) => `setpointd/${name(site)}/chargers/c${index}/online`),
    ).flat(),
    Buffer.from("true"),
    true,
  );

/** The event for all vehicles, in deliveries of 1,000: from the first POST to the last publish. */
async function event(
  workers: readonly Daemon[],
  broker: string,
  partner: SimulatedPartner,
  subscriber: Subscriber,
  { figure }: Report,
): Promise<Published> {
  const vehicles = each(SITES, (site) => each(VEHICLES, (index) => `${name(site)}-v${index}`)).flat();
  // The list has them as well: the next leader of a site would withdraw them otherwise.
  const events = each(Math.ceil(vehicles.length / IN_ONE), (part) =>
    partner.put(
      anEvent(`EV-${part}`, {
        lastsMs: 24 * 3_600_000,
        vehicles: vehicles.slice(part * IN_ONE, (part + 1) * IN_ONE),
      }),
    ),
  );
  const arriving = subscriber.nextOfEach(vehicles.length, PATIENCE_MS);
  const statesCounted = await countStates(broker);
  const processorBefore = workers.map(({ processorMs }) => processorMs);
  const began = performance.now();
  const tookMs: number[] = [];
  let again = 0;
  const queue = events.entries();
  const sender = async (): Promise<void> => {
    for (const [index, wire] of queue) {
      const sentAt = performance.now();
      const worker = workers[index % workers.length];
      // As the partner: whatever is not taken is delivered again.
      for (;;) {
        const answer = await worker?.deliver(wire).catch(String);
        if (typeof answer === "object" && answer.status === 202) break;
        again += 1;
        if (again > events.length) throw new Error(`${JSON.stringify(answer)}\n${worker?.errors}`);
        await sleep(1_000);
      }
      tookMs.push(performance.now() - sentAt);
    }
  };
  await Promise.all([sender(), sender()]);
  figure("fleet: deliveries that were not taken at once", "deliveries", again);
  figure("fleet: 202 p99 while the event arrives", "ms", percentile(tookMs, 0.99));
  figure("fleet: 202 p50 while the event arrives", "ms", percentile(tookMs, 0.5));
  const arrived = await arriving;
  figure("fleet: first POST to last publish", "ms", performance.now() - began);
  figure(
    "fleet: processor time of the workers for the event",
    "ms",
    workers.reduce((sum, { processorMs }, index) => sum + processorMs - (processorBefore[index] ?? 0), 0),
  );
  // States follow their commands within a second.
  await sleep(2_000);
  const states = await statesCounted();
  figure("fleet: states published for the event", "messages", states);
  return { command: arrived[0]?.payload ?? Buffer.alloc(200), states };
}

/** `npm run bench -- fleet --sites 1000 --vehicles 100 --lease 10s`: two workers, one PostgreSQL, one broker. */
export const fleet: Measurement = async (report) => {
  const { figure, progress } = report;
  await using stack = new AsyncDisposableStack();
  const { cluster, broker, partner, configure } = await aFleet(stack);
  progress(`fleet: ${SITES} sites of ${VEHICLES} vehicles`);
  await allOnline(broker.url);
  const configs = [configure("first"), configure("second")] as const;
  const first = stack.use(await Daemon.fleet(configs[0], SECRET, WORKER));
  const second = stack.use(await Daemon.fleet(configs[1], SECRET, WORKER));
  await sleep(5_000);
  const leftEmpty = (await leftIn(first)) + (await leftIn(second));
  const empty = first.memory + second.memory;
  const putAt = performance.now();
  await putSites(configs[0]);
  figure("fleet: sites put, each", "ms", (performance.now() - putAt) / SITES);
  const began = performance.now();
  await allReady([first, second]);
  figure("fleet: all sites led after the put", "ms", performance.now() - began);
  await sleep(20_000);
  figure("fleet: processor time of an idle site in a second", "ms", await processorMs([first, second]));
  figure("fleet: resident memory of an idle site", "bytes", (first.memory + second.memory - empty) / SITES);
  const left = (await leftIn(first)) + (await leftIn(second)) - leftEmpty;
  figure("fleet: memory in use of an idle site, all garbage collected", "bytes", left / SITES);
  progress(`load of the machine: ${loadavg().join(" ")}`);
  await using subscriber = await Subscriber.on(broker.url, { answers: true });
  const bytesBefore = await databaseBytes(cluster);
  const published = await event([first, second], broker.url, partner, subscriber, report);
  await sleep(5_000);
  figure(
    `fleet: processor time of a site under the event in a second, refresh ${REFRESH}`,
    "ms",
    await processorMs([first, second]),
  );
  figure(
    "fleet: database for a vehicle and event",
    "bytes",
    ((await databaseBytes(cluster)) - bytesBefore) / SITES / VEHICLES,
  );
  await floors(cluster, broker.url, published, report);
  const lost = await readyAt(first);
  const again = subscriber.nextOfEach(lost * VEHICLES, PATIENCE_MS);
  const killedAt = performance.now();
  const before = second.processorMs;
  await first.end("SIGKILL");
  await allReady([second]);
  figure(`fleet: ${lost} sites of a killed worker led again`, "ms", performance.now() - killedAt);
  figure("fleet: processor time of a site that is led again", "ms", (second.processorMs - before) / lost);
  await again;
  figure("fleet: their chargers have their level again", "ms", performance.now() - killedAt);
  progress(`load of the machine: ${loadavg().join(" ")}`);
};
