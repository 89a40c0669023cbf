import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";

import type { Trials } from "./trials.ts";

/** An address that setpointd connects to. */
export interface Destination {
  /** Key in the configuration. */
  readonly key: string;
  readonly url: string;
  /** Certificates for TLS. Absent members: those of the system. */
  readonly tls?: ConnectionOptions;
}

/** A longer wait looks like a firewall that drops packets. */
const CONNECT_WITHIN_MS = 10_000;

const PORTS: Readonly<Record<string, number>> = {
  "http:": 80,
  "https:": 443,
  "mqtt:": 1883,
  "mqtts:": 8883,
  "ws:": 80,
  "wss:": 443,
};

/** Host and port of a URL. */
export function endpointOf(url: string): {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
} {
  const { hostname, port, protocol } = new URL(url);
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (PORTS[protocol] ?? 0) : Number(port),
    isTls: ["https:", "mqtts:", "wss:"].includes(protocol),
  };
}

/** Reaches an address in three steps: its name, its port, its certificate. The first that fails ends it. */
export async function tryReach({ key, url, tls = {} }: Destination, trials: Trials): Promise<void> {
  const { host, port, isTls } = endpointOf(url);
  const where = `${host}:${port}`;
  trials.by(`the name service of this machine, for ${host}`);
  const address = await resolve(host);
  if (address.ip === null)
    return trials.failed(
      `${key} name`,
      `${host} has no address (${address.reason})`,
      `a name that this machine can resolve: check ${key} and the name server (/etc/resolv.conf)`,
    );
  trials.by(`a connection to ${where} without a request`);
  const began = performance.now();
  const connected = await open(() => connectTcp({ host: address.ip, port }), "connect");
  if (connected !== null)
    return trials.failed(`${key} port`, `${where} ${connected.reason}`, remedyOf(connected.code, key));
  const tookMs = Math.max(1, Math.round(performance.now() - began));
  const reached = `${where}${isIP(host) === 0 ? ` (${address.ip})` : ""} answers in ${tookMs} ms`;
  if (!isTls) return trials.ok(key, `${reached}, without TLS`);
  trials.by(`a TLS handshake with ${where}`);
  const seen: Handshake = { protocol: null, fault: null, ends: null };
  const refused = await open(() => {
    const socket = connectTls({
      host: address.ip,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...tls,
      // The fault is read below, so that the certificate can be shown beside it.
      rejectUnauthorized: false,
    });
    socket.once("secureConnect", () => note(socket, seen));
    return socket;
  }, "secureConnect");
  const ends = seen.ends === null ? "" : `, its certificate ends on ${seen.ends}`;
  if (refused !== null)
    trials.failed(
      `${key} TLS`,
      `${where} answers, but TLS fails: ${refused.reason}`,
      `a server that speaks TLS at this port: check the scheme and the port in ${key}`,
    );
  else if (seen.fault !== null)
    trials.failed(
      `${key} TLS`,
      `the certificate of ${host} is not trusted: ${seen.fault}${ends}`,
      "a valid certificate for this name, by an authority that this machine trusts: check the clock, the ca in the configuration, or ask the operator of that server",
    );
  else trials.ok(key, `${reached}, ${seen.protocol ?? "TLS"}${ends}`);
}

interface Handshake {
  protocol: string | null;
  /** Null: the certificate is trusted. */
  fault: string | null;
  ends: string | null;
}

function note(socket: TLSSocket, seen: Handshake): void {
  seen.protocol = socket.getProtocol();
  seen.ends = socket.getPeerCertificate().valid_to ?? null;
  if (socket.authorized) return;
  // The type has an error; Node gives its code as text as well.
  const fault: unknown = socket.authorizationError;
  if (fault instanceof Error) seen.fault = fault.message;
  else seen.fault = typeof fault === "string" ? fault : "no reason given";
}

interface Fault {
  readonly code: string;
  readonly reason: string;
}

/** Null: connected. The connection is closed at once. */
async function open(start: () => Socket, event: "connect" | "secureConnect"): Promise<Fault | null> {
  const { promise, resolve: settle } = Promise.withResolvers<Fault | null>();
  const socket = start();
  const timer = setTimeout(
    () => settle({ code: "ETIMEDOUT", reason: `does not answer within ${CONNECT_WITHIN_MS / 1000} s` }),
    CONNECT_WITHIN_MS,
  );
  socket.once(event, () => settle(null));
  socket.on("error", (error) => {
    const code = "code" in error ? String(error.code) : "";
    settle({ code, reason: code === "ECONNREFUSED" ? "refuses the connection" : error.message });
  });
  socket.once("close", () => settle({ code: "CLOSED", reason: "closes the connection" }));
  const result = await promise;
  clearTimeout(timer);
  socket.destroy();
  return result;
}

async function resolve(
  host: string,
): Promise<{ readonly ip: string } | { readonly ip: null; readonly reason: string }> {
  try {
    return { ip: (await lookup(host)).address };
  } catch (error) {
    return {
      ip: null,
      reason: error instanceof Error && "code" in error ? String(error.code) : String(error),
    };
  }
}

function remedyOf(code: string, key: string): string {
  switch (code) {
    case "ECONNREFUSED":
      return `a server that runs and listens at this port: check the port in ${key}, and start that server`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `a route and a firewall that let this machine reach it: check the network, and ${key}`;
    default:
      return `an address that accepts connections: check ${key} and the network`;
  }
}
