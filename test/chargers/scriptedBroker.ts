import { createServer, type AddressInfo, type Socket } from "node:net";

export interface Script {
  /** Told in CONNACK. */
  readonly receiveMaximum?: number;
  /** Publishes on these topics never get their PUBACK. */
  readonly ignores?: (topic: string) => boolean;
  /** Publishes on these topics get their PUBACK and a DISCONNECT (server busy) in one write. */
  readonly leavesAfter?: (topic: string) => boolean;
  /** Publishes on these topics end the connection without an answer. */
  readonly hangsUpAt?: (topic: string) => boolean;
  /** A SUBSCRIBE with more filters ends the connection. */
  readonly mostFilters?: number;
  /** The first so many connections are cut when they subscribe. */
  readonly cutsSubscribers?: number;
  /** Topics of messages, QoS 1, that come in one write with the SUBACK. */
  readonly retained?: readonly string[];
}

export interface ScriptedBroker extends AsyncDisposable {
  readonly url: string;
  /** Topics of all publishes, in order. */
  readonly published: string[];
  /** Number of messages that were acknowledged. */
  readonly acknowledged: () => number;
  readonly connects: () => number;
  /** DISCONNECT with this reason code to everyone who is there. */
  readonly disconnect: (code: number) => void;
}

/** Just enough MQTT 5 to say what real brokers say rarely. Knows packets below 128 bytes only. */
export async function aScriptedBroker({
  receiveMaximum,
  ignores = () => false,
  leavesAfter = () => false,
  hangsUpAt = () => false,
  mostFilters = Number.POSITIVE_INFINITY,
  cutsSubscribers = 0,
  retained = [],
}: Script = {}): Promise<ScriptedBroker> {
  const sockets = new Set<Socket>();
  const published: string[] = [];
  let connects = 0;
  let acknowledged = 0;
  const connack =
    receiveMaximum === undefined
      ? [0x20, 3, 0, 0, 0]
      : [0x20, 6, 0, 0, 3, 0x21, receiveMaximum >> 8, receiveMaximum & 255];

  const answer = (packet: Buffer): readonly number[] => {
    switch (packet.readUInt8(0) >> 4) {
      case 1:
        connects += 1;
        return connack;
      case 3: {
        const end = 4 + packet.readUInt16BE(2);
        const topic = packet.toString("utf8", 4, end);
        published.push(topic);
        if (ignores(topic)) return [];
        const puback = [0x40, 2, packet.readUInt8(end), packet.readUInt8(end + 1)];
        return leavesAfter(topic) ? [...puback, 0xe0, 1, 0x89] : puback;
      }
      case 4:
        acknowledged += 1;
        return [];
      case 8:
        return [0x90, 3 + filtersIn(packet), packet.readUInt8(2), packet.readUInt8(3), 0].concat(
          Array.from({ length: filtersIn(packet) }, () => 1),
          retained.flatMap((topic, index) => {
            const { length } = topic;
            return [0x33, length + 5, 0, length, ...Buffer.from(topic), 0, index + 1, 0];
          }),
        );
      case 12:
        return [0xd0, 0];
      default:
        return [];
    }
  };

  const isDenied = (packet: Buffer): boolean => {
    const kind = packet.readUInt8(0) >> 4;
    if (kind === 8) return filtersIn(packet) > mostFilters;
    return kind === 3 && hangsUpAt(packet.toString("utf8", 4, 4 + packet.readUInt16BE(2)));
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    let unread = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk]);
      while (unread.length >= 2 && unread.length >= 2 + unread.readUInt8(1)) {
        const length = 2 + unread.readUInt8(1);
        if (unread.readUInt8(0) >> 4 === 8 && connects <= cutsSubscribers) return void socket.destroy();
        const packet = unread.subarray(0, length);
        if (isDenied(packet)) return void socket.end();
        socket.write(Buffer.from(answer(packet)));
        unread = unread.subarray(length);
      }
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    published,
    acknowledged: () => acknowledged,
    connects: () => connects,
    disconnect: (code) => {
      for (const socket of sockets) socket.write(Buffer.from([0xe0, 1, code]));
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Filters of a SUBSCRIBE without properties (MQTT 5, 3.8.3). */
function filtersIn(packet: Buffer): number {
  let filters = 0;
  for (let at = 5; at < packet.length; at += packet.readUInt16BE(at) + 3) filters += 1;
  return filters;
}
