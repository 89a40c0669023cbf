import { connect, type IClientOptions, type MqttClient } from "mqtt";

import { millis, minutes, seconds, type Millis } from "../../domain/units.ts";

/** Which MQTT the next attempt speaks: 5 first, 3.1.1 (on the wire: 4) where the broker does not know it. */
export interface VersionChoice {
  readonly version: 4 | 5;
  /** Failed attempts in a row with this version. */
  readonly failures: number;
}

export const firstChoice: VersionChoice = { version: 5, failures: 0 };

/** So often in a row, then the other version gets its turn. */
const PATIENCE = 3;

/** What worked is kept. */
export const afterSuccess = ({ version }: VersionChoice): VersionChoice => ({ version, failures: 0 });

/**
 * `version`: the broker said that it does not speak it; the other one at once.
 * `unanswered`: it hung up without a word, as some old brokers do on MQTT 5, and as any broker does on its way down.
 */
export function afterFailure(
  { version, failures }: VersionChoice,
  failure: "version" | "unanswered" | "other",
): VersionChoice {
  const other: VersionChoice = { version: version === 5 ? 4 : 5, failures: 0 };
  if (failure === "version") return other;
  if (failures + 1 < PATIENCE) return { version, failures: failures + 1 };
  return version === 4 || failure === "unanswered" ? other : { version, failures: 0 };
}

/** Every deadline of a broker session; all monotonic. */
export interface BrokerTiming {
  /** TCP, TLS, and the broker's answer to CONNECT together. */
  readonly connectTimeout: Millis;
  /** From a publish or a subscription on the wire to its acknowledgement. */
  readonly ackDeadline: Millis;
  /** A silent broker is noticed after one and a half of these. */
  readonly keepalive: Millis;
  readonly backoffFloor: Millis;
  readonly backoffCeiling: Millis;
  /** A connection that lasted this long was a success: the back-off starts over. */
  readonly steadyAfter: Millis;
  /** Another client with our id is there: we stay away this long instead of throwing it out in turn (F84). */
  readonly takenOverPause: Millis;
  /** An orderly stop takes at most this long. */
  readonly stopWithin: Millis;
}

/** DESIGN 2 and 5.7. */
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

/** Where a broker is and how it knows us. */
export interface BrokerAddress {
  /** mqtt, mqtts, ws or wss; anything in it but host, port and path is ignored. */
  readonly url: string;
  readonly username: string | null;
  /** Read at every attempt, so that a changed password needs no restart (F83). */
  readonly password: () => string | undefined;
  /** PEM texts, read at every attempt as well; what is absent is the system's authorities, or no certificate of our own. */
  readonly tls: (() => { readonly ca?: string; readonly cert?: string; readonly key?: string }) | null;
}

export interface Dialling {
  readonly address: BrokerAddress;
  readonly clientId: string;
  readonly version: 4 | 5;
  /** Told `false`, retained, by the broker if we vanish. */
  readonly presenceTopic: string;
  readonly timing: BrokerTiming;
}

/** MQTT 5 brokers keep anything larger to themselves; what a charger says is capped at 64 KiB further in. */
const LARGEST_PACKET_BYTES = 1024 * 1024;

type Protocol = "mqtt" | "mqtts" | "ws" | "wss";

const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["mqtt:", "mqtt"],
  ["mqtts:", "mqtts"],
  ["ws:", "ws"],
  ["wss:", "wss"],
]);

/** One attempt with a client of its own, which never tries again by itself. A string says why there is none. */
export function createClient(dialling: Dialling): MqttClient | string {
  const url = URL.parse(dialling.address.url);
  const protocol = url === null ? undefined : PROTOCOLS.get(url.protocol);
  if (url === null || protocol === undefined) return "the broker's url is not mqtt, mqtts, ws or wss";
  try {
    return connect({
      ...reach(url, protocol),
      ...credentials(dialling.address, protocol),
      ...session(dialling),
    });
  } catch (error) {
    // Certificates that cannot be read throw here.
    return error instanceof Error ? error.message : String(error);
  }
}

/** The url is taken apart here: the library would read a client id and a password out of it. */
function reach(url: URL, protocol: Protocol): IClientOptions {
  const websocket = protocol === "ws" || protocol === "wss";
  return {
    protocol,
    // A socket wants IPv6 without brackets, a websocket's url wants them.
    host: websocket ? url.hostname : url.hostname.replace(/^\[|\]$/g, ""),
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    ...(websocket ? { path: url.pathname + url.search } : {}),
  };
}

/** Over mqtt and ws the library would take a certificate as a wish for mqtts and wss. */
const isEncrypted = (protocol: Protocol): boolean => protocol === "mqtts" || protocol === "wss";

function credentials(address: BrokerAddress, protocol: Protocol): IClientOptions {
  const password = address.password();
  const tls = isEncrypted(protocol) ? address.tls?.() : null;
  return {
    ...(address.username === null ? {} : { username: address.username }),
    ...(password === undefined ? {} : { password }),
    // Said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not turn it off.
    ...(isEncrypted(protocol) ? { rejectUnauthorized: true } : {}),
    ...tls,
  };
}

/** Nothing is kept, queued or sent again by the library (reference/failures.md, findings 3 to 6). */
function session({ clientId, version, presenceTopic, timing }: Dialling): IClientOptions {
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
    // Without one it spells several words per packet for a debugger that is not there.
    log: () => {},
    will: { topic: presenceTopic, payload: "false", qos: 1, retain: true },
    ...(version === 5 ? { properties: { maximumPacketSize: LARGEST_PACKET_BYTES } } : {}),
  };
}
