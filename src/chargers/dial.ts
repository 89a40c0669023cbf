import { connect, type IClientOptions, type MqttClient } from "mqtt";
import type { BrokerTiming } from "./brokerTiming.ts";

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
export function dial(dialling: Dialling): MqttClient | string {
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
