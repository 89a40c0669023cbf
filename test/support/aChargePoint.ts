import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";

import { freePort } from "./freePort.ts";
import { launch } from "./setpointd.ts";
import { waitFor } from "./waitFor.ts";

const PYTHON = fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));

/** The library of mobilityhouse, installed by .ci/run. Where CI is set, a test that needs it fails instead. */
export const pythonOcppAvailable = existsSync(PYTHON) || Boolean(process.env["CI"]);

interface Shown {
  readonly what: string;
  readonly [detail: string]: unknown;
}

const CHARGER_PASSWORD = "password-of-the-charger";

/** A process whose output is read line by line. */
class Running implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  output = "";

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    this.#ended = new Promise((ended) => child.once("close", ended));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get lines(): readonly Record<string, unknown>[] {
    return this.output
      .slice(0, this.output.lastIndexOf("\n") + 1)
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  shown(what: string): readonly Shown[] {
    return this.lines.filter((line) => line["what"] === what) as unknown as readonly Shown[];
  }

  /** A line for its input. */
  write(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.isRunning) this.#child.kill(signal);
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** A charge point written with a library that is not ours. */
export class ChargePoint extends Running {
  static start(
    url: string,
    {
      identity = "CP-1",
      password = CHARGER_PASSWORD,
      mode = "follow",
      version = "1.6",
      env = {},
    }: ChargePointOptions = {},
  ): ChargePoint {
    const name = version === "1.6" ? "chargePoint.py" : "chargePoint201.py";
    const script = fileURLToPath(new URL(name, import.meta.url));
    return new ChargePoint(
      spawn(PYTHON, [script, url, identity, password, mode], { env: { ...process.env, ...env } }),
    );
  }

  /** Amperes per phase. */
  get draws(): number | undefined {
    const last = this.shown("draws").at(-1)?.["amperes"];
    return typeof last === "number" ? last : undefined;
  }
}

export interface ChargePointOptions {
  readonly identity?: string;
  /** "": it sends none. */
  readonly password?: string;
  /** CA, and CERT with KEY: files for wss. */
  readonly env?: Readonly<Record<string, string>>;
  /** Only the first mode in 2.0.1. */
  readonly version?: "1.6" | "2.0.1";
  readonly mode?: "follow" | "ignore" | "refuse" | "noSmartCharging";
}

/** A running `setpointd ocpp`. */
export class OcppProcess extends Running {
  readonly url: string;
  readonly statusUrl: string;
  readonly #file: string;

  private constructor(file: string, listen: number, status: number) {
    super(launch(["ocpp", "-c", file]));
    this.#file = file;
    this.url = `ws://127.0.0.1:${listen}/ocpp`;
    this.statusUrl = `http://127.0.0.1:${status}`;
  }

  /** The same bridge once more, with its configuration and its state. */
  async again(): Promise<OcppProcess> {
    const [listen, status] = [this.url, this.statusUrl].map((url) => Number(new URL(url).port));
    return new OcppProcess(this.#file, listen ?? 0, status ?? 0).#up();
  }

  async #up(): Promise<this> {
    await waitFor(() => {
      if (!this.isRunning) throw new Error(`the bridge ended at once: ${this.output}`);
      return this.output.includes("the OCPP bridge is up");
    });
    return this;
  }

  /** `over`: sections laid over the configuration of one station with the charger bay-01. */
  static async start(
    broker: string,
    { ocpp, ...over }: Readonly<Record<string, unknown>> = {},
  ): Promise<OcppProcess> {
    const directory = mkdtempSync(join(tmpdir(), "setpointd-ocpp-"));
    const [listen, status] = [await freePort(), await freePort()];
    writeFileSync(join(directory, "cp-1"), CHARGER_PASSWORD, { mode: 0o600 });
    const sections = {
      site: "depot",
      mqtt: { url: broker },
      ocpp: { listen: `127.0.0.1:${listen}`, meterValues: { every: "1s" }, ...(ocpp as object | undefined) },
      status: `127.0.0.1:${status}`,
      stations: [
        {
          identity: "CP-1",
          password: { file: "cp-1" },
          connectors: [{ id: 1, charger: "bay-01", writesPerHour: 3600 }],
        },
      ],
      ...over,
    };
    writeFileSync(join(directory, "ocpp.yaml"), stringify(sections));
    process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
    return new OcppProcess(join(directory, "ocpp.yaml"), listen, status).#up();
  }

  async station(): Promise<StationView> {
    const answer = await fetch(`${this.statusUrl}/api/v1/stations`);
    const { stations } = (await answer.json()) as { stations: readonly [StationView] };
    return stations[0];
  }
}

/** A central system written with a library that is not ours. */
export class CentralSystem extends Running {
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    super(child);
    this.port = port;
  }

  static async start(port?: number): Promise<CentralSystem> {
    const listen = port ?? (await freePort());
    const script = fileURLToPath(new URL("centralSystem.py", import.meta.url));
    const running = new CentralSystem(spawn(PYTHON, [script, String(listen)]), listen);
    await waitFor(() => {
      if (!running.isRunning) throw new Error(`the central system ended at once: ${running.output}`);
      return running.shown("up").length === 1;
    });
    return running;
  }
}

/** The members of a station that tests read. */
export interface StationView {
  readonly state: string;
  readonly problems: readonly string[];
  readonly upstream: { readonly waiting: number } | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly connectors: readonly {
    readonly limit: { readonly level: string } | null;
    readonly lastRefusal: string | null;
    readonly composite: { readonly value: number } | null;
  }[];
}
