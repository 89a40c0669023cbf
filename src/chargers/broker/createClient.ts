import { connect, type IClientOptions, type MqttClient } from "mqtt";

import { millis, minutes, seconds, type Millis } from "../../domain/units.ts";
import { arrivedIsRead } from "../../platform/cooperative.ts";
import { messageOf } from "../../platform/text.ts";

/**
 * MQTT version of the next attempt: 5 first, then 3.1.1 (protocol level 4) if the broker does not support
 * it.
 */
export interface VersionChoice {
  readonly version: 4 | 5;
  /** Failed attempts in a row with this version that speak against it. */
  readonly failures: number;
  /** The broker has accepted a connection with MQTT 5. */
  readonly takesFive: boolean;
}

export const firstChoice: VersionChoice = { version: 5, failures: 0, takesFive: false };

/** Failures in a row before the other version is tried. */
const PATIENCE = 3;

/** A version that worked is kept. */
export const afterSuccess = ({ version, takesFive }: VersionChoice): VersionChoice => ({
  version,
  failures: 0,
  takesFive: takesFive || version === 5,
});

/**
 * `version`: the broker refused the version, so the other one is next. `unanswered`: it hung up without an
 * answer. Some old brokers do this on MQTT 5, and any broker does while it stops. `silent`: it neither answered nor hung
 * up. A broker that cannot read MQTT 5 may wait for the rest of it; one that took MQTT 5 before is frozen.
 */
export function afterFailure(
  { version, failures, takesFive }: VersionChoice,
  failure: "version" | "unanswered" | "silent" | "other",
): VersionChoice {
  const other: VersionChoice = { version: version === 5 ? 4 : 5, failures: 0, takesFive };
  if (failure === "version") return other;
  const mayBeOld = failure === "unanswered" || (failure === "silent" && !takesFive);
  if (version === 5 && !mayBeOld) return { version, failures: 0, takesFive };
  return failures + 1 < PATIENCE ? { version, failures: failures + 1, takesFive } : other;
}

/** Every deadline of a broker session; all monotonic. */
export interface BrokerTiming {
  /** TCP, TLS and the answer to CONNECT together. */
  readonly connectTimeout: Millis;
  /** From a publish or a subscription on the wire to its acknowledgement. */
  readonly ackDeadline: Millis;
  /** A silent broker is noticed after one and a half of these. */
  readonly keepalive: Millis;
  readonly backoffFloor: Millis;
  readonly backoffCeiling: Millis;
  /** A connection that lasted this long was a success: the back-off starts over. */
  readonly steadyAfter: Millis;
  /**
   * Another client connected with our id: we wait this long before we reconnect, and do not throw it out in
   * turn.
   */
  readonly takenOverPause: Millis;
  /** An orderly stop takes at most this long. */
  readonly stopWithin: Millis;
}

/** Defaults. */
export const brokerTiming: BrokerTiming = {
  connectTimeout: seconds(5),
  ackDeadline: seconds(5),
  keepalive: seconds(10),
  backoffFloor: millis(500),
  backoffCeiling: seconds(30),
  steadyAfter: seconds(10),
  takenOverPause: minutes(1),
  stopWithin: seconds(1),
};

/** Address and credentials of a broker. */
export interface BrokerAddress {
  /** mqtt, mqtts, ws or wss. Only host, port and path are used. */
  readonly url: string;
  readonly username: string | null;
  /** Read at every attempt, so a changed password needs no restart. */
  readonly password: () => string | undefined;
  /** PEM texts, read at every attempt. Absent members: the system's authorities, or no client certificate. */
  readonly tls: (() => { readonly ca?: string; readonly cert?: string; readonly key?: string }) | null;
  /** Reason why the broker, which runs in this process, does not listen. Null: it listens. Absent: it runs elsewhere. */
  readonly fault?: () => string | null;
}

export interface ClientSettings {
  readonly address: BrokerAddress;
  readonly clientId: string;
  readonly version: 4 | 5;
  /** The broker publishes a retained `false` here if our connection is lost. */
  readonly presenceTopic: string;
  readonly timing: BrokerTiming;
}

/**
 * MQTT 5 brokers do not deliver larger packets. Payloads of chargers have a lower limit, 64 KiB, where they
 * are read.
 */
const LARGEST_PACKET_BYTES = 1024 * 1024;

type Protocol = "mqtt" | "mqtts" | "ws" | "wss";

const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["mqtt:", "mqtt"],
  ["mqtts:", "mqtts"],
  ["ws:", "ws"],
  ["wss:", "wss"],
]);

/**
 * Creates a client for one attempt; it never reconnects by itself. A string: the reason why there is none.
 */
export function createClient(settings: ClientSettings): MqttClient | string {
  const url = URL.parse(settings.address.url);
  const protocol = url === null ? undefined : PROTOCOLS.get(url.protocol);
  const fault = settings.address.fault?.() ?? null;
  if (fault !== null) return fault;
  if (url === null || protocol === undefined) return "the broker's url is not mqtt, mqtts, ws or wss";
  try {
    const client = connect({
      ...reach(url, protocol),
      ...credentials(settings.address, protocol),
      ...session(settings),
    });
    readBeforeSilence(client);
    acknowledgeTogether(client);
    return client;
  } catch (error) {
    // Certificates that cannot be read throw here.
    return messageOf(error);
  }
}

/** A broker is silent only if its PINGRESP is not among what has arrived. */
function readBeforeSilence(client: MqttClient): void {
  let answers = 0;
  client.on("packetreceive", ({ cmd }) => (answers += cmd === "pingresp" ? 1 : 0));
  const end = client.onKeepaliveTimeout.bind(client);
  client.onKeepaliveTimeout = () => {
    const before = answers;
    void arrivedIsRead().then(() => {
      if (answers === before) end();
    });
  };
}

/** Acknowledgements of the messages of one turn leave in one write. The library would write each alone. */
function acknowledgeTogether(client: MqttClient): void {
  const { stream } = client;
  const leave = (): void => stream.uncork();
  client.on("packetreceive", (packet) => {
    if (packet.cmd !== "publish" || packet.qos === 0 || stream.writableCorked > 0) return;
    stream.cork();
    setImmediate(leave);
  });
}

/** The URL is split here: the library would read a client id and a password from it. */
function reach(url: URL, protocol: Protocol): IClientOptions {
  const websocket = protocol === "ws" || protocol === "wss";
  return {
    protocol,
    // A socket needs IPv6 without brackets, a websocket URL needs them.
    host: websocket ? url.hostname : url.hostname.replace(/^\[|\]$/g, ""),
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    ...(websocket ? { path: url.pathname + url.search } : {}),
  };
}

/** With a certificate the library would switch mqtt and ws to mqtts and wss. */
const isEncrypted = (protocol: Protocol): boolean => protocol === "mqtts" || protocol === "wss";

function credentials(address: BrokerAddress, protocol: Protocol): IClientOptions {
  const password = address.password();
  const tls = isEncrypted(protocol) ? address.tls?.() : null;
  return {
    ...(address.username === null ? {} : { username: address.username }),
    ...(password === undefined ? {} : { password }),
    // Explicit: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not turn it off.
    ...(isEncrypted(protocol) ? { rejectUnauthorized: true } : {}),
    ...tls,
  };
}

/**
 * The library keeps no session, queues nothing and resends nothing: an old command must never arrive late.
 */
function session({ clientId, version, presenceTopic, timing }: ClientSettings): IClientOptions {
  return {
    clientId,
    protocolVersion: version,
    clean: true,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    keepalive: Math.max(1, Math.round(timing.keepalive / 1000)),
    connectTimeout: timing.connectTimeout,
    timerVariant: "native",
    // The library would keep each number of two bytes as a Buffer of its own: 65,536 of them, 7 MB.
    writeCache: false,
    // The default logger formats debug text for each packet.
    log: () => {},
    will: { topic: presenceTopic, payload: "false", qos: 1, retain: true },
    ...(version === 5 ? { properties: { maximumPacketSize: LARGEST_PACKET_BYTES } } : {}),
  };
}
