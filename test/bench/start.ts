import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { after, millis } from "../../src/domain/units.ts";
import { DATABASE } from "../../src/store/files.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, SECRET, vehicles } from "./depot.ts";
import { installed } from "./installed.ts";
import { type Measurement, median } from "./figure.ts";
import { eventFor, now, Sender } from "./partner.ts";
import { Side } from "./side.ts";

const CHARGERS = 200;
const STORED = 100_000;
/** A body may be 1 MiB. */
const EVENTS_A_BODY = 2_000;
const RUNS = 5;
const TOMORROW = millis(86_400_000);

/** Process start to ready with an empty state, and verbs that need no daemon, over `node -e 0`. */
export const startEmpty: Measurement = async ({ figure }) => {
  await using broker = await Mosquitto.start();
  const { launcher } = await installed();
  const [empty, help, check, floor]: [number[], number[], number[], number[]] = [[], [], [], []];
  while (empty.length < RUNS) {
    using depot = await benchDepot({ chargers: CHARGERS, broker: broker.url });
    help.push(await spanOf(launcher, "--help"));
    check.push(await spanOf(launcher, "check", "-c", depot.config));
    empty.push(await startOf(depot));
    floor.push(await spanOf(process.execPath, "-e", "0"));
  }
  figure("start.empty", "ms", median(empty), median(floor));
  figure("start.help", "ms", median(help), median(floor));
  figure("start.check", "ms", median(check), median(floor));
};

/** Process start to ready with 100,000 stored events, over a bare program that reads and parses as many. */
export const start: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start();
  using depot = await benchDepot({ chargers: CHARGERS, broker: broker.url });
  await fill(depot);
  progress(`start: ${STORED} events stored`);
  const [full, fullFloor]: [number[], number[]] = [[], []];
  while (full.length < RUNS) {
    full.push(await startOf(depot));
    fullFloor.push(await bareStart([join(depot.state, DATABASE)]));
  }
  figure("start.100k", "ms", median(full), median(fullFloor));
};

async function startOf(depot: BenchDepot): Promise<number> {
  await using daemon = await Daemon.start(depot);
  return daemon.readyAfter;
}

/** Time from start to end of a program, in ms. */
async function spanOf(program: string, ...args: readonly string[]): Promise<number> {
  const began = performance.now();
  const child = spawn(program, args, { env: { ...process.env, SECRET }, stdio: "ignore" });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}`);
  return performance.now() - began;
}

async function bareStart(args: readonly string[]): Promise<number> {
  const began = performance.now();
  await using bare = await Side.start("floor/starter", args);
  return bare.pid > 0 ? performance.now() - began : NaN;
}

/** Through the webhook, as they would have come. */
async function fill(depot: BenchDepot): Promise<void> {
  await using daemon = await Daemon.start(depot);
  await using sender = new Sender(depot.webhook, 1);
  await daemon.hasBroker();
  const fleet = vehicles(CHARGERS);
  for (let stored = 0; stored < STORED; stored += EVENTS_A_BODY) {
    const events = Array.from({ length: EVENTS_A_BODY }, (_, index) =>
      eventFor(fleet.slice(index % CHARGERS, (index % CHARGERS) + 1), { start: after(now(), TOMORROW) }),
    );
    await sender.post(JSON.stringify(events));
  }
}
