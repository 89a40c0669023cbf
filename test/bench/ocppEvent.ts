import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { aSite, anEvent } from "../support/aSite.ts";
import { OcppProcess } from "../support/aChargePoint.ts";
import { waitFor } from "../support/waitFor.ts";
import { Station } from "./ocppStation.ts";
import { cpuOf, quiet } from "./process.ts";

/**
 * One event for every connector, POST to the last SetChargingProfile answered: node test/bench/ocppEvent.ts [STATIONS].
 * First a bare server, then daemon, broker and bridge. The stations run in this process.
 */

const STATIONS = Number(process.argv[2] ?? 1_000);
const PATIENCE = { timeoutMs: 180_000 };
const ROUNDS = 5;
const ids = Array.from({ length: STATIONS }, (_, n) => n);

/** Processes beside the stations, by name. */
type Pids = Readonly<Record<string, number>>;

/** CPU time that the processes have used, ms. `stations`: this process. */
const processorOf = (pids: Pids): Readonly<Record<string, number>> => ({
  ...Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid)])),
  stations: (process.cpuUsage().user + process.cpuUsage().system) / 1000,
});

/** Milliseconds until every station has answered a profile more. The least of several rounds. */
async function least(
  stations: readonly Station[],
  pids: Pids,
  post: (amperes: number) => Promise<unknown>,
): Promise<number> {
  const all: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const pid of Object.values(pids)) await quiet(pid);
    for (const station of stations) station.profiles = 0;
    const before = processorOf(pids);
    const began = performance.now();
    const posted = post(6 + round);
    await waitFor(() => stations.every(({ profiles }) => profiles > 0), { ...PATIENCE, everyMs: 2 });
    all.push(performance.now() - began);
    const used = Object.entries(processorOf(pids)).map(
      ([name, ms]) => `${name} ${Math.round(ms - (before[name] ?? 0))}`,
    );
    console.log(`  ${Math.round(all.at(-1) ?? 0)} ms; processor: ${used.join(", ")} ms`);
    await posted;
  }
  return Math.min(...all);
}

async function bare(): Promise<number> {
  const child = spawn(process.execPath, [fileURLToPath(new URL("floor/ocpp.ts", import.meta.url))]);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(line.toString());
  const stations = ids.map((n) => new Station(`ws://127.0.0.1:${port}/CP-${n}`));
  await waitFor(() => stations.every(({ socket }) => socket.readyState === socket.OPEN), PATIENCE);
  const post = (amperes: number) =>
    fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: JSON.stringify({ amperes }) });
  const ms = await least(stations, { server: child.pid ?? 0 }, post);
  for (const { socket } of stations) socket.terminate();
  child.kill();
  return ms;
}

async function ours(): Promise<number> {
  await using site = await aSite({
    over: {
      chargers: ids.map((n) => ({ id: `bay-${n}`, current: { min: 6, max: 32 } })),
      vehicles: ids.map((n) => ({ id: `veh-${n}`, charger: `bay-${n}` })),
    },
  });
  await using daemon = await site.run();
  await using bridge = await OcppProcess.start(site.broker.url, {
    ocpp: { listen: "127.0.0.1:0", allowAnonymous: true, meterValues: { configure: false } },
    stations: ids.map((n) => ({
      identity: `CP-${n}`,
      connectors: [{ id: 1, charger: `bay-${n}`, writesPerHour: 3600 }],
    })),
  });
  const { ocpp } = JSON.parse(bridge.output.split("\n").find((text) => text.includes("is up")) ?? "") as {
    ocpp: number;
  };
  const stations = ids.map((n) => new Station(`ws://127.0.0.1:${ocpp}/ocpp/CP-${n}`));
  // A subscriber to every topic would be a part of the figure, and loses messages at a broker's cap.
  await site.floor[Symbol.asyncDispose]();
  await waitFor(
    async () => {
      const { chargers } = await daemon.view<{ chargers: { online: number } }>("/api/v1/status");
      return chargers.online === STATIONS;
    },
    { ...PATIENCE, everyMs: 500 },
  );
  const pids = { daemon: daemon.pid, bridge: bridge.pid, broker: site.broker.pid };
  const ms = await least(stations, pids, (amperes) => {
    const vehicles = ids.map((n) => `veh-${n}`);
    return daemon.deliver(anEvent("EV-1", { lastsMs: 3_600_000, amperes, vehicles }));
  });
  for (const { socket } of stations) socket.terminate();
  return ms;
}

const floor = await bare();
console.log(`bare server: ${Math.round(floor)} ms`);
const whole = await ours();
console.log(`daemon, broker and bridge: ${Math.round(whole)} ms, ratio ${(whole / floor).toFixed(1)}`);
process.exit(0);
