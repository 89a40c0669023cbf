import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";

import { freePort } from "../support/freePort.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Daemon } from "./daemon.ts";
import { benchDepot, scratchDirectory, vehicles } from "./depot.ts";
import { NOTHING_DROPPED } from "./fanout.ts";
import { type Measurement, median, quantile } from "./figure.ts";
import { eventFor, Sender } from "./partner.ts";
import { cpuOf, quiet, residentOf } from "./process.ts";
import { lastOf, Subscriber } from "./subscriber.ts";

const FLEET = 20_000;
const FANOUTS = 5;
/** Vehicles and samples of each latency. */
const LATENCIES = [
  { each: 1, samples: 100 },
  { each: 200, samples: 40 },
];
const WARM_UP = 20;
/** As in latency.ts. */
const PAUSE_MS = 150;
const PACKAGE = join(import.meta.dirname, "node-red");

/**
 * The daemon beside Node-RED, as a user would choose between them. Its flow takes the webhook, answers, and publishes a
 * setpoint for each vehicle at QoS 1. It checks no signature, stores nothing, draws no start, and knows no charger.
 */
export const nodeRed: Measurement = async ({ figure, progress }) => {
  if (!existsSync(join(PACKAGE, "node_modules"))) {
    progress("nodeRed: installing Node-RED");
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: PACKAGE,
      stdio: "ignore",
    });
  }
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using depot = await benchDepot({ chargers: FLEET, broker: broker.url });
  await using daemon = await Daemon.start(depot);
  await using flow = await Flow.start(broker.url);
  await using subscriber = await Subscriber.on(broker.url);
  await using toDaemon = new Sender(depot.webhook, 1);
  await using toFlow = new Sender(flow.url, 1);
  await daemon.hasBroker();

  const took = async (sender: Sender, event: { readonly ID: string }, count: number): Promise<number> => {
    const body = JSON.stringify(event);
    const all = subscriber.next(count);
    const began = performance.now();
    await sender.post(body);
    return lastOf(await all) - began;
  };
  for (const { each, samples } of LATENCIES) {
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round < WARM_UP + samples; round += 1) {
      const fleet = vehicles(each, (round * each) % (FLEET - each));
      for (const [sender, times] of [
        [toDaemon, ours],
        [toFlow, theirs],
      ] as const) {
        const time = await took(sender, eventFor(fleet), each);
        if (round >= WARM_UP) times.push(time);
        await sleep(PAUSE_MS);
      }
    }
    progress(`nodeRed: ${samples} samples each of ${each} vehicles`);
    figure(`nodeRed.latency${each}`, "ms", median(ours), median(theirs));
    figure(`nodeRed.latency${each}.p99`, "ms", quantile(ours, 0.99), quantile(theirs, 0.99));
  }
  const [ours, theirs]: [number[], number[]] = [[], []];
  const [ourCpu, theirCpu]: [number[], number[]] = [[], []];
  const fleet = vehicles(FLEET);
  const most = { ours: 0, theirs: 0 };
  for (let run = 0; run <= FANOUTS; run += 1) {
    const event = eventFor(fleet);
    const before = [cpuOf(daemon.pid), cpuOf(flow.pid)] as const;
    const time = await took(toDaemon, event, FLEET);
    await quiet(daemon.pid);
    const times = [time, await took(toFlow, event, FLEET)] as const;
    await quiet(flow.pid);
    const cpu = [cpuOf(daemon.pid) - before[0], cpuOf(flow.pid) - before[1]] as const;
    progress(
      `nodeRed: ${FLEET} vehicles in ${times[0].toFixed(0)} ms, Node-RED in ${times[1].toFixed(0)} ms`,
    );
    most.ours = Math.max(most.ours, residentOf(daemon.pid));
    most.theirs = Math.max(most.theirs, residentOf(flow.pid));
    // Every run finds the same depot.
    const released = subscriber.next(FLEET);
    await toDaemon.withdraw(event);
    await released;
    await quiet(daemon.pid);
    // The first is that of a program that is still compiled.
    if (run === 0) continue;
    ours.push(times[0]);
    theirs.push(times[1]);
    ourCpu.push(cpu[0]);
    theirCpu.push(cpu[1]);
  }
  figure("nodeRed.fanout20k", "ms", median(ours), median(theirs));
  figure("nodeRed.fanout20k.cpu", "ms", median(ourCpu), median(theirCpu));
  figure("nodeRed.resident", "MB", most.ours / 1e6, most.theirs / 1e6);
};

/** Turns the event of a webhook into one message for each vehicle, and the answer. */
const EXPAND = `
  const { ID, payload, targets } = msg.payload;
  const messages = targets[0].values.map((vehicle) => ({
    topic: "setpointd/nodered/chargers/" + vehicle + "/set",
    payload: { id: ID, kind: "current", value: payload.targetCurrent, unit: "A", vehicle },
  }));
  return [messages, { ...msg, statusCode: 202, payload: "" }];
`;

const flowFor = (broker: URL): readonly object[] => [
  { id: "tab", type: "tab", label: "relay" },
  { id: "broker", type: "mqtt-broker", broker: broker.hostname, port: broker.port, protocolVersion: "5" },
  { id: "in", z: "tab", type: "http in", url: "/webhooks/events", method: "post", wires: [["expand"]] },
  { id: "expand", z: "tab", type: "function", func: EXPAND, outputs: 2, wires: [["out"], ["answer"]] },
  { id: "out", z: "tab", type: "mqtt out", qos: "1", retain: "false", broker: "broker", wires: [] },
  { id: "answer", z: "tab", type: "http response", wires: [] },
];

/** Node-RED as a process of its own, with the flow above. */
class Flow implements AsyncDisposable {
  readonly url: string;
  readonly #child: ReturnType<typeof spawn>;
  readonly #scratch: Disposable;

  private constructor(child: ReturnType<typeof spawn>, scratch: Disposable, url: string) {
    this.#child = child;
    this.#scratch = scratch;
    this.url = url;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves once the flow answers and its broker is connected. */
  static async start(broker: string): Promise<Flow> {
    const scratch = scratchDirectory();
    const port = await freePort();
    const flows = join(scratch.path, "flows.json");
    const settings = join(scratch.path, "settings.cjs");
    writeFileSync(flows, JSON.stringify(flowFor(new URL(broker))));
    const off = { enabled: false };
    const chosen = { uiHost: "127.0.0.1", uiPort: port, flowFile: flows, userDir: scratch.path };
    const quietly = { httpAdminRoot: false, telemetry: off, logging: { console: { level: "warn" } } };
    writeFileSync(settings, `module.exports = ${JSON.stringify({ ...chosen, ...quietly })};`);
    const main = join(PACKAGE, "node_modules/node-red/red.js");
    const child = spawn(process.execPath, [main, "--settings", settings], { stdio: "ignore" });
    const flow = new Flow(child, scratch, `http://127.0.0.1:${port}`);
    await waitFor(() => isListening(flow.url), { timeoutMs: 60_000 });
    await using subscriber = await Subscriber.on(broker);
    await using sender = new Sender(flow.url, 1);
    // Node-RED drops what it publishes before its broker is connected.
    await waitFor(
      async () => {
        const first = subscriber.next(1, 500).catch(() => null);
        await sender.post(JSON.stringify(eventFor(["v0"])));
        return (await first) !== null;
      },
      { timeoutMs: 60_000 },
    );
    return flow;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await gone;
    }
    this.#scratch[Symbol.dispose]();
  }
}

async function isListening(url: string): Promise<boolean> {
  try {
    const { body } = await request(url);
    await body.dump();
    return true;
  } catch {
    return false;
  }
}
