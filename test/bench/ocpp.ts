import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect } from "mqtt";

import { Mosquitto } from "../support/mosquitto.ts";
import { freePort } from "../support/freePort.ts";
import { waitFor } from "../support/waitFor.ts";
import { Station } from "./ocppStation.ts";

/** The OCPP bridge with many stations: node test/bench/ocpp.ts [STATIONS]. The stations run in this process. */

const STATIONS = Number(process.argv[2] ?? 1_000);
const PATIENCE = { timeoutMs: 120_000 };
const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

await using stack = new AsyncDisposableStack();
const directory = mkdtempSync(join(tmpdir(), "ocpp-bench-"));
stack.defer(() => rmSync(directory, { recursive: true, force: true }));
const broker = stack.use(await Mosquitto.start());
const [port, status] = [await freePort(), await freePort()];
const stations = Array.from({ length: STATIONS }, (_, n) => ({
  identity: `CP-${n}`,
  connectors: [{ id: 1, charger: `bay-${n}` }],
}));
const config = join(directory, "ocpp.yaml");
writeFileSync(
  config,
  JSON.stringify({
    site: "depot",
    mqtt: { url: broker.url },
    ocpp: { listen: `127.0.0.1:${port}`, allowAnonymous: true, meterValues: { configure: false } },
    status: `127.0.0.1:${status}`,
    stations,
  }),
);
const bridge = spawn(process.execPath, [MAIN, "ocpp", "-c", config], {
  env: { ...process.env, LOG_LEVEL: "warn" },
  stdio: "ignore",
});
stack.defer(() => void bridge.kill());

const memory = (): number => Number(readFileSync(`/proc/${bridge.pid}/statm`, "utf8").split(" ")[1]) * 4096;
function processorMs(): number {
  const stat = readFileSync(`/proc/${bridge.pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
async function measured(what: string, step: () => Promise<void>): Promise<void> {
  const [began, used] = [performance.now(), processorMs()];
  await step();
  const [took, cpu] = [performance.now() - began, processorMs() - used];
  console.log(`${what}: ${Math.round(took)} ms, processor of the bridge ${cpu} ms`);
}

const online = new Set<string>();
const acks = new Set<string>();
const client = connect(broker.url);
stack.defer(async () => client.endAsync(true));
client.on("message", (topic, payload) => {
  const charger = topic.split("/").at(-2) ?? "";
  if (topic.endsWith("/online")) online[payload.toString() === "true" ? "add" : "delete"](charger);
  else acks.add(JSON.parse(payload.toString()).id as string);
});
await client.subscribeAsync(["setpointd/depot/chargers/+/online", "setpointd/depot/chargers/+/ack"]);
await waitFor(async () => (await fetch(`http://127.0.0.1:${status}/healthz`).catch(() => null))?.ok);

const command = (round: number): void => {
  for (let n = 0; n < STATIONS; n += 1)
    client.publish(
      `setpointd/depot/chargers/bay-${n}/set`,
      JSON.stringify({
        v: 1,
        id: `${round}-${n}`,
        epoch: round,
        seq: n,
        kind: "current",
        value: 10 + round,
        unit: "A",
        until: null,
        lease: 180,
        vehicle: null,
        event: null,
      }),
      { qos: 1 },
    );
};

const empty = memory();
const all: Station[] = [];
await measured(`${STATIONS} stations connect, until all are online at the broker`, async () => {
  for (let n = 0; n < STATIONS; n += 1) all.push(new Station(`ws://127.0.0.1:${port}/ocpp/CP-${n}`));
  await waitFor(() => online.size === STATIONS, PATIENCE);
});
console.log(`memory: ${Math.round((memory() - empty) / STATIONS / 1024)} KiB per station`);
await measured("one order for each, until the last is acknowledged", async () => {
  command(1);
  await waitFor(() => acks.size === STATIONS, PATIENCE);
});
await measured("30 s of meter values, each station every 10 s", async () => {
  for (let second = 0; second < 30; second += 1) {
    all.filter((_, n) => n % 10 === second % 10).forEach((station) => station.meter());
    await sleep(1_000);
  }
});
await measured("all cut and back at once, until the last is commanded again", async () => {
  for (const { socket } of all) socket.terminate();
  await waitFor(() => online.size === 0, PATIENCE);
  acks.clear();
  for (const station of all) station.open();
  await waitFor(() => online.size === STATIONS, PATIENCE);
  command(2);
  await waitFor(() => acks.size === STATIONS, PATIENCE);
});
console.log(`memory at the end: ${Math.round((memory() - empty) / STATIONS / 1024)} KiB per station`);
for (const { socket } of all) socket.terminate();

// The floor of the storm: a server that accepts each station, and sends the one profile when the last is there.
const bare = spawn(process.execPath, [fileURLToPath(new URL("floor/ocpp.ts", import.meta.url))]);
stack.defer(() => void bare.kill());
const [line] = (await once(bare.stdout, "data")) as [Buffer];
const floor = Number(line.toString());
const others = all.map((_, n) => new Station(`ws://127.0.0.1:${floor}/CP-${n}`));
const areOpen = () => others.every(({ socket }) => socket.readyState === socket.OPEN);
await waitFor(areOpen, PATIENCE);
const began = performance.now();
for (const { socket } of others) socket.terminate();
for (const station of others) station.open();
await waitFor(areOpen, PATIENCE);
await fetch(`http://127.0.0.1:${floor}/`, { method: "POST", body: JSON.stringify({ amperes: 7 }) });
await waitFor(() => others.every(({ profiles }) => profiles > 0), PATIENCE);
console.log(`the same with a bare server: ${Math.round(performance.now() - began)} ms`);
for (const { socket } of others) socket.terminate();
