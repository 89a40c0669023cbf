import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";

import { waitFor } from "../support/waitFor.ts";
import { type BenchDepot, SECRET } from "./depot.ts";
import { installed } from "./installed.ts";
import type { LongestTurn } from "./turnMonitor.ts";

/** As packaging/setpointd.sh starts it. */
const AS_INSTALLED = [
  "--disable-warning=DEP0169",
  "--max-semi-space-size=16",
  "--max-old-space-size-percentage=60",
  "--external-memory-accounted-in-global-limit",
];
/** For a closer look, e.g. `BENCH_DAEMON="--cpu-prof --cpu-prof-dir=profiles" npm run bench -- fanout20k`. */
const closerLook = process.env["BENCH_DAEMON"]?.split(" ") ?? [];

/** What else its process is started with. */
interface Extras {
  readonly options?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** True: `longestTurn` works. */
  readonly watchTurns?: boolean;
  /** A command before it, as that of a `MemoryGroup`. */
  readonly within?: readonly string[];
}

const TURN_MONITOR = new URL("turnMonitor.ts", import.meta.url).href;

/** The real daemon as a process of its own, logging to a file as it would to the journal; stopped by its pid. */
export class Daemon implements AsyncDisposable {
  readonly pid: number;
  /** From its start to the first 200 of /readyz, in ms. */
  readonly readyAfter: number;
  readonly #child: ChildProcess;
  readonly #depot: Pick<BenchDepot, "operator">;

  private constructor(child: ChildProcess, depot: Pick<BenchDepot, "operator">, readyAfter: number) {
    this.pid = child.pid ?? 0;
    this.readyAfter = readyAfter;
    this.#child = child;
    this.#depot = depot;
  }

  /** Resolves once it is ready. Throws with the end of its log if it ends before. */
  static async start(depot: Omit<BenchDepot, keyof Disposable>, extras: Extras = {}): Promise<Daemon> {
    const log = join(depot.directory, "daemon.log");
    const output = openSync(log, "a");
    const { main, cache } = await installed();
    const began = performance.now();
    const { options = [], env = {}, watchTurns = false, within = [] } = extras;
    const monitor = watchTurns ? ["--import", TURN_MONITOR] : [];
    const node = [process.execPath, ...AS_INSTALLED, ...closerLook, ...monitor, ...options];
    const [command, ...parameters] = [...within, ...node, main, "run", "-c", depot.config] as const;
    const child = spawn(command, parameters, {
      env: { PATH: process.env["PATH"] ?? "", SECRET, NODE_COMPILE_CACHE: cache, ...env },
      stdio: ["ignore", output, output, ...(watchTurns ? (["ipc"] as const) : [])],
    });
    closeSync(output);
    await waitFor(
      () => {
        if (child.exitCode !== null)
          throw new Error(`setpointd ended: ${readFileSync(log, "utf8").slice(-2000)}`);
        return isReady(depot.operator);
      },
      { timeoutMs: 120_000, everyMs: 5 },
    );
    return new Daemon(child, depot, performance.now() - began);
  }

  /** Sum over the lines of a metric whose name and labels begin so, e.g. `setpointd_audit_rows_total{kind="outcome"`. */
  async metric(beginning: string): Promise<number> {
    const { body } = await request(`${this.#depot.operator}/metrics`);
    return (await body.text())
      .split("\n")
      .filter((line) => line.startsWith(beginning))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  }

  /** The longest turn of its event loop since the last call. Needs `watchTurns`. */
  longestTurn(): Promise<LongestTurn> {
    return new Promise((answered) => {
      this.#child.once("message", (turn) => answered(turn as LongestTurn));
      this.#child.send("turn");
    });
  }

  /** Resolves once the broker is connected: until then nothing would go out. */
  async hasBroker(): Promise<void> {
    await waitFor(async () => (await this.metric("setpointd_broker_up")) === 1, { timeoutMs: 30_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((ended) => this.#child.once("exit", ended));
    this.#child.kill("SIGTERM");
    await gone;
  }
}

async function isReady(operator: string): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`${operator}/readyz`);
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
