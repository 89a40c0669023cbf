import type { Server } from "node:http";
import type { Socket } from "node:net";

interface Visitor {
  readonly socket: Socket;
  readonly address: string;
  /** By address and port: under TLS a request has another socket object than its connection. */
  readonly key: string;
  /** Requests of it that came whole and are not answered yet. */
  unanswered: number;
}

/**
 * At most `most` connections, and room for one more all the same: of the address that holds most of them, the one goes
 * that has sent no whole request for longest. Whoever only sits there, or drips, cannot keep the partner out (F61).
 */
export function limitConnections(server: Server, most: number, onDropped: (address: string) => void): void {
  /** Whose last whole request is longest ago comes first. */
  const visitors = new Map<string, Visitor>();

  server.on("connection", (socket: Socket) => {
    const visitor = visitorOf(socket);
    visitors.set(visitor.key, visitor);
    socket.once("close", () => leave(visitors, visitor));
    if (visitors.size <= most) return;
    const leaving = longestIdle(visitors.values()) ?? visitor;
    leave(visitors, leaving);
    leaving.socket.destroy();
    onDropped(leaving.address);
  });

  server.on("request", (request, response) => {
    const visitor = visitors.get(keyOf(request.socket));
    if (visitor === undefined) return;
    request.once("end", () => {
      visitor.unanswered += 1;
      const answered = (): void => {
        visitor.unanswered -= 1;
        if (leave(visitors, visitor)) visitors.set(visitor.key, visitor);
      };
      // What its head alone is refused for is answered before it ends.
      if (response.writableEnded) answered();
      else response.once("close", answered);
    });
  });
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

const visitorOf = (socket: Socket): Visitor => ({
  socket,
  address: socket.remoteAddress ?? "",
  key: keyOf(socket),
  unanswered: 0,
});

/** False: it had left, and another may have its port by now. */
const leave = (visitors: Map<string, Visitor>, visitor: Visitor): boolean =>
  visitors.get(visitor.key) === visitor && visitors.delete(visitor.key);

/** Of the address with most of them the first; undefined: all are being answered. */
function longestIdle(visitors: Iterable<Visitor>): Visitor | undefined {
  const idle = [...visitors].filter(({ unanswered }) => unanswered === 0);
  const crowds = [...Map.groupBy(idle, ({ address }) => address).values()];
  return crowds.reduce((largest, crowd) => (crowd.length > largest.length ? crowd : largest), [])[0];
}
