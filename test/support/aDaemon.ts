import type { ChildProcess } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "undici";

import { checkAnswer } from "./someAnswers.ts";
import { launch } from "./setpointd.ts";
import { waitFor } from "./waitFor.ts";

/** Of memory, in bytes, on x64 and on arm64 as Debian has it. */
const PAGE = 4096;

/** One log line as pino writes it. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  /** Undefined: not JSON. */
  readonly json: unknown;
  readonly type: string;
}

export const signature = (body: string, secret: string): string =>
  createHmac("sha256", secret).update(body).digest("base64");

/** A running `setpointd run`: a real process, stopped by its own pid. */
export class Daemon implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #webhookSecret: string;
  readonly #ended: Promise<number | null>;
  readonly #lines: LogLine[] = [];
  /** Output that is not in `#lines` yet. */
  #unread = "";
  output = "";
  errors = "";

  private constructor(child: ChildProcess, webhookSecret: string) {
    this.#child = child;
    this.#webhookSecret = webhookSecret;
    child.stdout?.on("data", (chunk: Buffer) => {
      const text = chunk.toString();
      this.output += text;
      this.#unread += text;
    });
    child.stderr?.on("data", (chunk: Buffer) => (this.errors += chunk.toString()));
    this.#ended = new Promise((ended) => child.once("close", ended));
  }

  /** Resolves once it says that it is up. */
  static async start(
    config: string,
    webhookSecret: string,
    env: Readonly<Record<string, string>> = {},
    within: readonly string[] = [],
    timeoutMs = 90_000,
    upWords = "setpointd is up",
    verb = "run",
  ): Promise<Daemon> {
    await using stack = new AsyncDisposableStack();
    const daemon = stack.use(new Daemon(launch([verb, "-c", config], env, within), webhookSecret));
    await waitFor(
      () => {
        if (daemon.#child.exitCode !== null)
          throw new Error(`setpointd ended at once: ${daemon.errors}${daemon.output}`);
        return daemon.line(upWords);
      },
      { timeoutMs },
    );
    stack.move();
    return daemon;
  }

  /** A process of a fleet that is up, perhaps without a site. */
  static fleet(
    config: string,
    webhookSecret: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Daemon> {
    return Daemon.start(config, webhookSecret, env, [], undefined, "the fleet process is up", "fleet");
  }

  /** The log so far. Each line is parsed once: a fleet writes tens of thousands. */
  get lines(): readonly LogLine[] {
    const end = this.#unread.lastIndexOf("\n") + 1;
    for (const line of this.#unread.slice(0, end).split("\n"))
      if (line.startsWith("{")) this.#lines.push(JSON.parse(line));
    this.#unread = this.#unread.slice(end);
    return this.#lines;
  }

  /** The first line that contains the words. */
  line(words: string): LogLine | undefined {
    return this.lines.find(({ msg }) => msg.includes(words));
  }

  get webhookUrl(): string {
    return `http://127.0.0.1:${this.#port("webhook")}/webhooks/events`;
  }

  get operatorUrl(): string {
    return `http://127.0.0.1:${this.#port("operator")}`;
  }

  get brokerPort(): number {
    return this.#port("broker");
  }

  /** A delivery: an object is spelled as JSON, a text goes as it is. Signed unless `headers` are given. */
  async deliver(content: unknown, headers?: Readonly<Record<string, string>>): Promise<Answered> {
    const body = typeof content === "string" ? content : JSON.stringify(content);
    const proof = headers ?? { "x-payload-signature": signature(body, this.#webhookSecret) };
    return ask(this.webhookUrl, {
      method: "POST",
      headers: { "content-type": "application/json", ...proof },
      body,
    });
  }

  /** Of the operator listener, e.g. `/api/v1/status`. A successful answer is as docs/openapi.json describes it. */
  async get(path: string): Promise<Answered> {
    const answered = await ask(`${this.operatorUrl}${path}`, { method: "GET" });
    if (answered.status === 200) checkAnswer("GET", path, answered.json);
    return answered;
  }

  /** As `get`, for answers that are known to be JSON of this shape. */
  async view<T>(path: string): Promise<T> {
    return (await this.get(path)).json as T;
  }

  async hasBroker(): Promise<boolean> {
    return (await this.view<{ broker: { connected: boolean } }>("/api/v1/status")).broker.connected;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Does not wait for what it causes. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resident memory in bytes, as Linux tells it. */
  get memory(): number {
    const [, resident] = readFileSync(`/proc/${this.#child.pid}/statm`, "utf8").split(" ");
    return Number(resident) * PAGE;
  }

  /** The most that was ever resident, in bytes. */
  get peakMemory(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Processor time since its start, in ms: the same on a busy machine. Linux counts in ticks of 10 ms. */
  get processorMs(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    // The name before them may contain blanks.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  /** The exit code, null after a signal, once all output was read. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    return this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }

  #port(listener: "webhook" | "operator" | "broker"): number {
    // A stand-in has its listener before it leads, and another one then.
    const words = ["setpointd is up", "standing by", "the fleet process is up"];
    const port = this.lines.findLast(({ msg }) => words.some((each) => msg.endsWith(each)))?.[listener];
    if (typeof port !== "number") throw new Error(`no port of the ${listener}`);
    return port;
  }
}

/**
 * One HTTP request on a connection of its own, its answer read to the end. A kept connection may have been closed by
 * its server while this process was not running.
 */
export async function ask(
  url: string,
  options: {
    readonly method: "GET" | "POST" | "PUT" | "DELETE";
    readonly headers?: Record<string, string>;
    readonly body?: string;
  },
): Promise<Answered> {
  const { statusCode, headers, body } = await request(url, { ...options, reset: true });
  const text = await body.text();
  return { status: statusCode, text, json: parsed(text), type: String(headers["content-type"] ?? "") };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
