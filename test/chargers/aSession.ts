import { connect, type IClientOptions, type MqttClient } from "mqtt";
import pino from "pino";
import { BrokerSession, type BrokerSessionOptions } from "../../src/chargers/broker/session.ts";
import type { BrokerTiming } from "../../src/chargers/broker/createClient.ts";
import { millis } from "../../src/domain/units.ts";
import { waitFor } from "../support/waitFor.ts";

export const PRESENCE = "setpointd/depot/gateway/online";

/** Short deadlines, so that outages take no time in tests. */
export const quick = {
  connectTimeout: millis(400),
  ackDeadline: millis(400),
  backoffFloor: millis(40),
  backoffCeiling: millis(150),
  stopWithin: millis(500),
} satisfies Partial<BrokerTiming>;

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly reason?: string;
  readonly mqtt?: string;
  readonly topic?: string;
}

/** A real logger whose lines can be read back. */
export function aLog(): {
  readonly log: pino.Logger;
  readonly lines: LogLine[];
  readonly text: () => string;
} {
  const lines: LogLine[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, text: () => lines.map((line) => JSON.stringify(line)).join("\n") };
}

export interface SessionUnderTest extends AsyncDisposable {
  readonly session: BrokerSession;
  /** "up", or "down: reason", in order. */
  readonly ups: string[];
  /** Messages as `topic payload`, retained ones with a star. */
  readonly heard: string[];
  readonly lines: LogLine[];
  readonly logText: () => string;
}

type Chosen = Partial<Omit<BrokerSessionOptions, "address">> & Partial<BrokerSessionOptions["address"]>;

/** A session against `url`, not yet up. */
export function aSession(url: string, chosen: Chosen = {}): SessionUnderTest {
  const {
    username = null,
    password = () => undefined,
    tls = null,
    fault = () => null,
    timing,
    ...rest
  } = chosen;
  const ups: string[] = [];
  const heard: string[] = [];
  const { log, lines, text } = aLog();
  const session = new BrokerSession({
    address: { url, username, password, tls, fault },
    section: "mqtt",
    clientId: "setpointd-depot",
    presenceTopic: PRESENCE,
    filters: ["setpointd/depot/chargers/+/online", "setpointd/depot/chargers/+/telemetry"],
    random: () => 1,
    log,
    onUp: () => ups.push("up"),
    onDown: (reason) => ups.push(`down: ${reason}`),
    onMessage: (topic, payload, retained) =>
      heard.push(`${topic} ${payload.toString()}${retained ? " *" : ""}`),
    ...rest,
    timing: { ...quick, ...timing },
  });
  return {
    session,
    ups,
    heard,
    lines,
    logText: text,
    [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
  };
}

export const upped = ({ session }: SessionUnderTest): Promise<true> =>
  waitFor(() => session.connected).then(() => true);

export interface Observer extends AsyncDisposable {
  readonly client: MqttClient;
  /** `topic payload` in order of arrival. */
  readonly seen: string[];
}

/** Another client of the same broker, subscribed to everything, which waits out any outage. */
export async function anObserver(url: string, chosen: Partial<IClientOptions> = {}): Promise<Observer> {
  const client = connect(url, { reconnectPeriod: 50, protocolVersion: 4, ...chosen });
  const seen: string[] = [];
  client.on("error", () => undefined);
  client.on("message", (topic, payload) => seen.push(`${topic} ${payload.toString()}`));
  await waitFor(() => client.connected);
  await client.subscribeAsync("#", { qos: 1 });
  return { client, seen, [Symbol.asyncDispose]: () => client.endAsync(true) };
}
