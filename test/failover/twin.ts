import type { ChildProcess } from "node:child_process";
import { request } from "undici";

import { signature } from "../support/aDaemon.ts";
import type { Gate } from "../support/aGate.ts";
import { launch } from "../support/setpointd.ts";

/** Longest wait for the answer to a delivery, ms: a frozen process accepts connections and does not answer. */
const PATIENCE_MS = 2_500;

/** One of the two gateways of a depot: a real process, with a gate of its own before the database. */
export class Twin {
  readonly name: string;
  readonly gate: Gate;
  readonly config: string;
  readonly #webhook: string;
  readonly #secret: string;
  #child: ChildProcess | null = null;
  #rest = "";
  #count = 0;
  /** The last lines of the log, for a report of a violation. */
  log: string[] = [];
  isFrozen = false;

  constructor(
    name: string,
    { gate, config, webhook, secret }: { gate: Gate; config: string; webhook: string; secret: string },
  ) {
    this.name = name;
    this.gate = gate;
    this.config = config;
    this.#webhook = webhook;
    this.#secret = secret;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Null: it runs. */
  get exit(): number | NodeJS.Signals | null {
    return this.#child === null ? 0 : (this.#child.exitCode ?? this.#child.signalCode);
  }

  /** How often it began to stand by or to lead since its start. */
  get count(): number {
    return this.#count;
  }

  start(): void {
    const child = launch(["run", "-c", this.config]);
    this.#child = child;
    this.#count = 0;
    this.isFrozen = false;
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => this.#read(chunk.toString()));
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.includes("standing by") || line.includes("setpointd is up")) this.#count += 1;
      this.log.push(line);
    }
    this.log = this.log.slice(-200);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null || this.exit !== null) return;
    const gone = new Promise((ended) => child.once("exit", ended));
    child.kill("SIGKILL");
    await gone;
  }

  freeze(): void {
    this.isFrozen = true;
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.isFrozen = false;
    this.#child?.kill("SIGCONT");
  }

  /** True: it answered 202. */
  async deliver(body: string): Promise<boolean> {
    try {
      const { statusCode, body: answer } = await request(this.#webhook, {
        method: "POST",
        headers: { "content-type": "application/json", "x-payload-signature": signature(body, this.#secret) },
        body,
        reset: true,
        headersTimeout: PATIENCE_MS,
        bodyTimeout: PATIENCE_MS,
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      await answer.dump();
      return statusCode === 202;
    } catch {
      return false;
    }
  }
}
