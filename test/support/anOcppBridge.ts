import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { stringify } from "yaml";
import { WebSocket, type ClientOptions } from "ws";

import { ocppConfigFrom } from "../../src/config/ocpp.ts";
import { instant, millis } from "../../src/domain/units.ts";
import { type Bridge, startOcpp } from "../../src/ocpp/start.ts";
import { stationView } from "../../src/ocpp/status.ts";
import type { Payload } from "../../src/ocpp/wire/frame.ts";
import { waitFor } from "./waitFor.ts";

const PASSWORD = "password-of-the-tests";
/** An AuthorizationKey, in the file "key". */
export const HEX_KEY = "0123456789ABCDEF0123456789abcdef01234567";

/** A bridge in this process, and its folder. */
export class TestBridge implements AsyncDisposable {
  readonly bridge: Bridge;
  readonly #directory: string;

  private constructor(bridge: Bridge, directory: string) {
    this.bridge = bridge;
    this.#directory = directory;
  }

  /** Two stations, CP-1 with bay-01 and CP-2 with bay-02. `broker`: nobody listens there unless given. */
  static async start(
    over: Readonly<Record<string, unknown>> = {},
    broker = "mqtt://127.0.0.1:9",
    monotonic = (): number => performance.now(),
  ): Promise<TestBridge> {
    const directory = mkdtempSync(join(tmpdir(), "setpointd-ocpp-"));
    writeFileSync(join(directory, "password"), PASSWORD, { mode: 0o600 });
    writeFileSync(join(directory, "key"), HEX_KEY, { mode: 0o600 });
    const stations = [1, 2].map((number) => ({
      identity: `CP-${number}`,
      password: { file: "password" },
      connectors: [{ id: 1, charger: `bay-0${number}` }],
    }));
    const { ocpp, ...others } = over;
    const sections = {
      site: "depot",
      mqtt: { url: broker },
      ocpp: { listen: "127.0.0.1:0", callTimeout: "1s", ...(ocpp as object | undefined) },
      status: "127.0.0.1:0",
      stations,
      ...others,
    };
    const loaded = ocppConfigFrom(stringify(sections), { env: {}, directory });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.mistakes));
    const bridge = await startOcpp(loaded.config, {
      now: () => instant(Date.now()),
      monotonic,
      random: Math.random,
      randomBytes: (count) => Buffer.alloc(count, 7),
      log: pino({ level: "silent" }),
      timing: { backoffFloor: millis(50), backoffCeiling: millis(100), stopWithin: millis(200) },
    });
    return new TestBridge(bridge, directory);
  }

  url(identity = "CP-1"): string {
    return `ws://127.0.0.1:${this.bridge.port}/ocpp/${identity}`;
  }

  /** As the API shows it. */
  view(identity = "CP-1") {
    const station = this.bridge.stations.get(identity);
    if (station === undefined) throw new Error(`no station ${identity}`);
    return stationView(station, instant(Date.now()));
  }

  async get(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.bridge.statusPort}${path}`);
    return { status: answer.status, text: await answer.text() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bridge[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A `set` of the daemon: 16 A for a minute, laid over with `more`. */
export const anOrder = (more: object = {}): string =>
  JSON.stringify({
    v: 1,
    id: "7-1",
    epoch: 7,
    seq: 1,
    kind: "current",
    value: 16,
    unit: "A",
    until: null,
    lease: 60,
    vehicle: null,
    event: null,
    ...more,
  });

const basic = (identity: string, password: string | Buffer): string =>
  `Basic ${Buffer.concat([Buffer.from(`${identity}:`), Buffer.from(password as string)]).toString("base64")}`;

export interface StationOptions extends ClientOptions {
  readonly identity?: string;
  readonly password?: string | Buffer | null;
  readonly protocols?: readonly string[];
  /** Answers to requests, by action. A text: the code of an error. Null: none is sent. Absent: as a station with Smart Charging. */
  readonly answers?: Answers;
}

type Answers = Readonly<Record<string, Payload | null | ((asked: Payload) => Payload | string)>>;

const ANSWERS: Readonly<Record<string, Payload>> = {
  GetConfiguration: {
    configurationKey: [
      { key: "SupportedFeatureProfiles", readonly: true, value: "Core,SmartCharging,RemoteTrigger" },
    ],
  },
};

/** A station of the tests: raw frames over a real WebSocket. */
export class TestStation implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly requests: { readonly id: string; readonly action: string; readonly payload: Payload }[] = [];
  readonly results: unknown[][] = [];
  answers: Answers;
  closed: { readonly code: number; readonly reason: string } | null = null;
  #next = 0;

  constructor(url: string, options: StationOptions = {}) {
    const { identity = url.split("/").at(-1) ?? "", password = PASSWORD, answers = {}, ...rest } = options;
    const { protocols = ["ocpp1.6"], ...client } = rest;
    this.answers = answers;
    this.socket = new WebSocket(url, [...protocols], {
      ...client,
      ...(password === null ? {} : { headers: { authorization: basic(identity, password) } }),
    });
    this.socket.on("error", () => undefined);
    this.socket.on("close", (code, reason) => (this.closed = { code, reason: reason.toString() }));
    this.socket.on("message", (content: Buffer) => this.#onMessage(content.toString()));
  }

  /** Connected and started. */
  static async boot(url: string, options: StationOptions = {}): Promise<TestStation> {
    const station = new TestStation(url, options);
    await waitFor(() => {
      if (station.closed !== null) throw new Error("the station was refused");
      return station.socket.readyState === WebSocket.OPEN;
    });
    await station.call("BootNotification", { chargePointVendor: "Test", chargePointModel: "One" });
    return station;
  }

  /** The status of a refused connection. */
  static async refusal(url: string, options: StationOptions = {}): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    const station = new TestStation(url, options);
    station.socket.on("unexpected-response", (_request, response) => resolve(response.statusCode ?? 0));
    station.socket.on("open", () => resolve(101));
    const status = await promise;
    station.socket.terminate();
    return status;
  }

  send(text: string): void {
    this.socket.send(text);
  }

  async call(action: string, payload: Payload): Promise<unknown[]> {
    const id = `s-${(this.#next += 1)}`;
    this.send(JSON.stringify([2, id, action, payload]));
    return waitFor(() => this.results.find(([, answered]) => answered === id));
  }

  asked(action: string): readonly Payload[] {
    return this.requests.filter((request) => request.action === action).map(({ payload }) => payload);
  }

  /** Answers the latest request for `action`, which had no answer. */
  answerLate(action: string, payload: Payload): void {
    const request = this.requests.findLast((each) => each.action === action);
    this.send(JSON.stringify([3, request?.id, payload]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.terminate();
    await waitFor(() => this.socket.readyState === WebSocket.CLOSED);
  }

  #onMessage(text: string): void {
    const frame = JSON.parse(text) as unknown[];
    if (frame[0] !== 2) {
      this.results.push(frame);
      return;
    }
    const [, id, action, payload] = frame as [number, string, string, Payload];
    this.requests.push({ id, action, payload });
    const given = action in this.answers ? this.answers[action] : (ANSWERS[action] ?? { status: "Accepted" });
    const answer = typeof given === "function" ? given(payload) : given;
    if (typeof answer === "string") this.send(JSON.stringify([4, id, answer, "", {}]));
    else if (answer !== null && answer !== undefined) this.send(JSON.stringify([3, id, answer]));
  }
}
