import { setTimeout as sleep } from "node:timers/promises";

import type { LogLine } from "../support/aDaemon.ts";
import { launch, setpointd } from "../support/setpointd.ts";
import { type Delay, waitsOf } from "./delays.ts";
import type { Kill } from "./kills.ts";

const FAILPOINT = new URL("failpoint.ts", import.meta.url).href;
/** A point that was not reached so long after the start is not waited for. */
const PATIENCE_MS = 4_000;

/**
 * Fills a folder with compiled code, which halves the start of every process that is given it: what is installed is
 * one bundled file, and starts as fast without.
 */
export async function warmUp(codeCache: string): Promise<void> {
  await setpointd(["--help"], { env: { NODE_COMPILE_CACHE: codeCache } });
}

/** One process of the daemon, from its start to its violent end. */
export class Life {
  /** Milliseconds since the epoch. */
  readonly startedAt = Date.now();
  endedAt = Number.POSITIVE_INFINITY;
  /** Where it killed itself; null: it was killed from outside. */
  killedAt: string | null = null;
  /** It ended although nobody killed it: what it said. */
  crashed: string | null = null;
  readonly lines: LogLine[] = [];
  /** Since its start. */
  readonly delays: readonly Delay[];
  readonly #child: ReturnType<typeof launch>;
  readonly #ended: Promise<void>;
  readonly #up = Promise.withResolvers<void>();
  #errors = "";
  #rest = "";

  constructor(config: string, codeCache: string, kill: Kill | null) {
    const failpoint: Record<string, string> =
      kill?.kind === "point"
        ? { NODE_OPTIONS: `--import=${FAILPOINT}`, SETPOINTD_KILL_AT: `${kill.point}:${kill.nth}` }
        : {};
    this.#child = launch(["run", "-c", config], { NODE_COMPILE_CACHE: codeCache, ...failpoint });
    this.delays = waitsOf(this.#child.pid ?? 0);
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk.toString()));
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#errors += chunk.toString()));
    this.#ended = new Promise((ended) => {
      this.#child.once("close", (code, signal) => {
        this.endedAt = Date.now();
        this.killedAt = /killed at (\S+)/.exec(this.#errors)?.[1] ?? null;
        if (signal !== "SIGKILL") this.crashed = `ended with ${code ?? signal}: ${this.#errors}`;
        this.#up.resolve();
        ended();
      });
    });
  }

  /** Null: not up yet, or gone. */
  get webhookUrl(): string | null {
    const listener = this.#listener("webhook");
    return listener === null ? null : `${listener}/webhooks/events`;
  }

  /** Null: not up yet, or gone. */
  get operatorUrl(): string | null {
    return this.#listener("operator");
  }

  /** From when on it had all that it needs: its listeners, the broker, and one answer of the partner. */
  get readyAt(): number {
    const parts = ["setpointd is up", "broker connected", "the partner answers"];
    return Math.max(...parts.map((words) => this.#saidAt(words)));
  }

  /** Waits for the moment that was planned, and makes sure of it. */
  async die(kill: Kill): Promise<void> {
    if (kill.kind === "point" || kill.since === "up") await this.#up.promise;
    await Promise.race([sleep(kill.kind === "moment" ? kill.ms : PATIENCE_MS), this.#ended]);
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #listener(name: "webhook" | "operator"): string | null {
    const port = this.#said("setpointd is up")?.[name];
    return typeof port === "number" && this.endedAt > Date.now() ? `http://127.0.0.1:${port}` : null;
  }

  #said(words: string): LogLine | undefined {
    return this.lines.find(({ msg }) => msg.startsWith(words));
  }

  #saidAt(words: string): number {
    const time = this.#said(words)?.["time"];
    return typeof time === "number" ? time : Number.POSITIVE_INFINITY;
  }

  #read(text: string): void {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("{")) this.lines.push(JSON.parse(line));
    if (this.#said("setpointd is up") !== undefined) this.#up.resolve();
  }
}
