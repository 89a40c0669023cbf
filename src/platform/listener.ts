import { once } from "node:events";
import type { RequestListener, Server, ServerResponse } from "node:http";
import type { ListenOptions, Server as SocketServer, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";

import { messageOf } from "./text.ts";

/** Connections by key, ordered by their last complete request, oldest first. */
type Connections = Map<string, ClientConnection>;

interface ClientConnection {
  readonly socket: Socket;
  readonly address: string;
  readonly key: string;
  /** Complete requests without an answer. */
  unanswered: number;
  among: Connections;
}

/** Caps on the connections of a listener. */
export interface ConnectionLimit {
  /** Maximum connections that carried no authenticated request. */
  readonly unproven: number;
  /** Maximum connections that carried an authenticated request. They are never closed for an unproven one. */
  readonly proven: number;
  readonly onDropped: (address: string) => void;
}

/**
 * Caps the connections of a listener, which protects memory and file descriptors.
 * Beyond the cap, the address with the most connections loses the one that has been idle longest.
 * A sender that only connects, or sends slowly, cannot lock the partner out. The returned function marks a connection
 * as proven.
 */
export function limitConnections(server: Server, limit: ConnectionLimit): (socket: Socket) => void {
  const unproven: Connections = new Map();
  const proven: Connections = new Map();
  const keys = connectionKeys();
  const find = (socket: Socket): ClientConnection | undefined => {
    const key = keys(socket);
    return unproven.get(key) ?? proven.get(key);
  };

  const enter = (connection: ClientConnection, among: Connections, most: number): void => {
    connection.among = among;
    among.set(connection.key, connection);
    if (among.size <= most) return;
    const leaving = longestIdle(among.values()) ?? connection;
    leave(leaving);
    leaving.socket.destroy();
    limit.onDropped(leaving.address);
  };

  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const connection = { socket, address, key: keys(socket), unanswered: 0, among: unproven };
    enter(connection, unproven, limit.unproven);
    socket.once("close", () => leave(connection));
  });

  server.on("request", (request, response) => {
    const connection = find(request.socket);
    if (connection === undefined) return;
    request.once("end", () => {
      connection.unanswered += 1;
      const answered = (): void => {
        connection.unanswered -= 1;
        if (leave(connection)) connection.among.set(connection.key, connection);
      };
      // A request that is refused by its headers is answered before its body ends.
      if (response.writableEnded) answered();
      else response.once("close", answered);
    });
  });

  return (socket) => {
    const connection = find(socket);
    if (connection?.among !== unproven) return;
    leave(connection);
    enter(connection, proven, limit.proven);
  };
}

/**
 * Last request of a connection. `answeredAt`: bytes read from the connection at its answer. Null: not answered yet.
 */
interface LastExchange {
  readonly response: ServerResponse;
  answeredAt: number | null;
}

/**
 * Serves one request per connection at a time. A pipelined request is not served, and its connection closes after the
 * current answer.
 * Pipelining is cheap for a sender and costs us a whole request each.
 * Byte counts decide which came first. Time cannot: on a busy machine the next request of an honest client is there
 * at once.
 */
export function oneRequestAtATime(
  listener: RequestListener,
  onPipelined: (address: string) => void,
): RequestListener {
  const last = new WeakMap<Socket, LastExchange>();
  const closing = new WeakSet<Socket>();
  return (request, response) => {
    const { socket } = request;
    const before = last.get(socket);
    const isPipelined =
      before !== undefined && (before.answeredAt === null || before.answeredAt === socket.bytesRead);
    if (!isPipelined) {
      const exchange: LastExchange = { response, answeredAt: null };
      last.set(socket, exchange);
      response.once("prefinish", () => (exchange.answeredAt = socket.bytesRead));
      listener(request, response);
      return;
    }
    if (closing.has(socket)) return;
    closing.add(socket);
    socket.pause();
    onPipelined(socket.remoteAddress ?? "");
    if (before.response.headersSent) socket.destroySoon();
    else before.response.shouldKeepAlive = false;
  };
}

/**
 * Key by address and port, because under TLS a request has another socket object than its connection. A Unix socket
 * has neither.
 */
function connectionKeys(): (socket: Socket) => string {
  const unix = new WeakMap<Socket, string>();
  let last = 0;
  return (socket) => {
    const { remoteAddress, remotePort } = socket;
    if (remotePort !== undefined) return `${remoteAddress} ${remotePort}`;
    let key = unix.get(socket);
    if (key === undefined) unix.set(socket, (key = `unix ${(last += 1)}`));
    return key;
  };
}

/** False: already removed. Its port may belong to another connection by now. */
const leave = (connection: ClientConnection): boolean =>
  connection.among.get(connection.key) === connection && connection.among.delete(connection.key);

/** Longest idle connection of the address with the most. Undefined: all have a request in progress. */
function longestIdle(connections: Iterable<ClientConnection>): ClientConnection | undefined {
  const idle = [...connections].filter(({ unanswered }) => unanswered === 0);
  const byAddress = [...Map.groupBy(idle, ({ address }) => address).values()];
  return byAddress.reduce((most, some) => (some.length > most.length ? some : most), [])[0];
}

/** A rate, and the number that may come at once. */
export interface Pace {
  readonly perSecond: number;
  readonly burst: number;
}

/** A token bucket. False: the pace is exceeded. */
export function bucket(pace: Pace, monotonic: () => number): () => boolean {
  let level = pace.burst;
  let at = monotonic();
  return () => {
    const now = monotonic();
    level = Math.min(pace.burst, level + ((now - at) / 1000) * pace.perSecond);
    at = now;
    if (level < 1) return false;
    level -= 1;
    return true;
  };
}

/**
 * A bucket for each address. Only the `kept` most recent addresses are stored, so a flood of addresses cannot
 * fill the memory.
 */
export function bucketPerAddress(
  pace: Pace,
  monotonic: () => number,
  kept = 10_000,
): (address: string) => boolean {
  const buckets = new Map<string, () => boolean>();
  return (address) => {
    const take = buckets.get(address) ?? bucket(pace, monotonic);
    buckets.delete(address);
    buckets.set(address, take);
    const [oldest] = buckets.keys();
    if (buckets.size > kept && oldest !== undefined) buckets.delete(oldest);
    return take();
  };
}

/**
 * Connections that may wait until they are accepted. Node asks for 511, and after an outage more chargers than that connect
 * at once: those beyond it would wait for a repeat of their first packet, or be cut off. The kernel has its own cap (somaxconn).
 */
const LISTEN_BACKLOG = 4_096;

/** Resolves once the server listens. Rejects if it cannot: it may be called again. */
export async function listenAt(server: SocketServer, address: ListenOptions): Promise<void> {
  const listening = once(server, "listening");
  server.listen({ ...address, backlog: LISTEN_BACKLOG });
  await listening;
}

const TRY_ADDRESS_AGAIN_MS = 5_000;

/**
 * The address of a listener. One that this machine lacks, such as that of a VPN that is down, is tried until it is
 * there: the chargers need control meanwhile.
 */
export class Binding implements Disposable {
  readonly #listen: () => Promise<unknown>;
  readonly #onChange: (fault: string | null) => void;
  #fault: string | null = null;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(listen: () => Promise<unknown>, onChange: (fault: string | null) => void) {
    this.#listen = listen;
    this.#onChange = onChange;
  }

  /**
   * Rejects if the address cannot be bound for another reason: another program has it. `onChange`: see `fault`.
   * `isNeeded`: a missing address is an error too.
   */
  static async open(
    listen: () => Promise<unknown>,
    onChange: (fault: string | null) => void,
    isNeeded = false,
  ): Promise<Binding> {
    const binding = new Binding(listen, onChange);
    try {
      await listen();
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && error.code === "EADDRNOTAVAIL";
      if (isNeeded || !isMissing) throw error;
      binding.#failed(error);
    }
    return binding;
  }

  /** Reason why nothing listens. Null: it listens. */
  get fault(): string | null {
    return this.#fault;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    this.#set(messageOf(error));
    this.#retry = setTimeout(() => void this.#tryAgain(), TRY_ADDRESS_AGAIN_MS);
  }

  async #tryAgain(): Promise<void> {
    try {
      await this.#listen();
      this.#set(null);
    } catch (error) {
      this.#failed(error);
    }
  }

  #set(fault: string | null): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    this.#onChange(fault);
  }
}

/**
 * `node:http` and `node:https` without an `import` of them: an import reads every export, and so loads the WebSocket
 * client of Node, which takes 50 ms of CPU at each start.
 */
export const { createServer: createHttpServer, STATUS_CODES } = process.getBuiltinModule("node:http");
const https = process.getBuiltinModule("node:https");
export const createHttpsServer = https.createServer;

/**
 * New connections get this certificate; open ones keep theirs. A text: the certificate is unusable, and the old one
 * stays.
 */
export function renewCertificate(server: Server, context: SecureContextOptions): string | null {
  if (!(server instanceof https.Server)) return "this listener has no TLS";
  try {
    server.setSecureContext(context);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
