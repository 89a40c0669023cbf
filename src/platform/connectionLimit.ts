import type { RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Connections of one kind, the one whose last whole request is longest ago first. */
type Connections = Map<string, ClientConnection>;

interface ClientConnection {
  readonly socket: Socket;
  readonly address: string;
  readonly key: string;
  /** Requests that came whole and are not answered yet. */
  unanswered: number;
  among: Connections;
}

export interface ConnectionLimit {
  /** Connections of senders that have proven nothing. */
  readonly unproven: number;
  /** Connections that carried something proven: they make no room for others. */
  readonly proven: number;
  readonly onDropped: (address: string) => void;
}

/**
 * Caps the connections of a listener, so that it leaves memory and file descriptors to others, and lets a new one in all
 * the same: of the address that holds most of them, the one goes that has sent no whole request for longest. A sender
 * that only connects, or drips, cannot keep the partner out (F61). The returned function marks a connection as proven.
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
      // What its head alone is refused for is answered before it ends.
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

/** The last request of a connection. `answeredAt`: bytes read from the connection by then; null: not answered yet. */
interface LastExchange {
  readonly response: ServerResponse;
  answeredAt: number | null;
}

/**
 * Answers one request of a connection at a time. One that came before the answer to another is not served, and the
 * connection ends with that answer: pipelined requests cost a sender little and us a whole request each. Bytes tell
 * which came first, and time does not: on a busy machine the next request of a prompt sender is there at once.
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

/** By address and port: under TLS a request has another socket object than its connection. A Unix socket has neither. */
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

/** False: it had left, and another may have its port by now. */
const leave = (connection: ClientConnection): boolean =>
  connection.among.get(connection.key) === connection && connection.among.delete(connection.key);

/** Of the address with most of them the first; undefined: all are being answered. */
function longestIdle(connections: Iterable<ClientConnection>): ClientConnection | undefined {
  const idle = [...connections].filter(({ unanswered }) => unanswered === 0);
  const byAddress = [...Map.groupBy(idle, ({ address }) => address).values()];
  return byAddress.reduce((most, some) => (some.length > most.length ? some : most), [])[0];
}
