import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import { Aedes } from "aedes";
import type { Logger } from "pino";

import { Binding, bucket, listenAt } from "../../platform/listener.ts";
import { TopicOwners } from "./access.ts";

interface Credentials {
  readonly username: string;
  readonly password: () => string;
}

export interface EmbeddedBrokerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Credentials of the chargers. Null: none needed. */
  readonly credentials: Credentials | null;
  /** Credentials and client id of the daemon. Only this client may command chargers. */
  readonly daemon: { readonly clientId: string; readonly username: string; readonly password: string };
  /** `<prefix>/<site>`. Topics below it belong to the daemon, except those that a charger reports on. */
  readonly root: string;
  /** Topics below the root on which every client may publish. */
  readonly shared: readonly string[];
  /** Connections at a time, the daemon's included. */
  readonly mostConnections: number;
  /** True: an address that this machine lacks is an error. Absent: it is bound once it is there. */
  readonly isAddressNeeded?: boolean;
  /** Monotonic ms. */
  readonly monotonic: () => number;
  readonly log: Logger;
}

/**
 * Credentials of the daemon at its embedded broker. The password is drawn at each start and never leaves
 * the process.
 */
export const daemonAt = (clientId: string, randomBytes: (count: number) => Buffer) => ({
  clientId,
  username: "setpointd",
  password: randomBytes(32).toString("hex"),
});

/** Each charger may reconnect while its old connection still counts. The rest is for other programs. */
export const connectionsFor = (chargers: number): number => 2 * chargers + 32;

/** Deadline for CONNECT, ms. A connection without it is closed. */
const CONNECT_WITHIN_MS = 5_000;
const LONGEST_CLIENT_ID = 64;

/**
 * A broker inside this process, for trials and small sites: MQTT 3.1.1, one user name for all chargers, no
 * persistence. Only the daemon may command chargers. The first client that uses a charger's topics owns
 * them. The default of the configuration is loopback.
 */
export class EmbeddedBroker implements AsyncDisposable {
  readonly #aedes: Aedes;
  readonly #server: Server;
  readonly #sockets: ReadonlySet<Socket>;
  readonly #binding: Binding;
  readonly port: number;

  private constructor(
    aedes: Aedes,
    server: Server,
    sockets: ReadonlySet<Socket>,
    binding: Binding,
    port: number,
  ) {
    this.#aedes = aedes;
    this.#server = server;
    this.#sockets = sockets;
    this.#binding = binding;
    this.port = port;
  }

  /** Rejects if the address is in use: the program cannot start then. */
  static async listen(options: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
    const { host, port, mostConnections, monotonic, log } = options;
    const aedes = await Aedes.createBroker({
      connectTimeout: CONNECT_WITHIN_MS,
      maxClientsIdLength: LONGEST_CLIENT_ID,
    });
    const mayWarn = bucket(WARNINGS, monotonic);
    const warn: Warn = (details, what) =>
      mayWarn()
        ? log.warn(details, `embedded broker: ${what}`)
        : log.debug(details, `embedded broker: ${what}`);
    control(aedes, options, warn);
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      guard(socket, monotonic, (reason) => warn({ peer: socket.remoteAddress, reason }, "connection closed"));
      aedes.handle(socket);
    });
    server.maxConnections = mostConnections;
    server.on("drop", () => warn({ mostConnections }, "connection refused, too many"));
    const portOf = (): number => {
      const address = server.address();
      return typeof address === "object" && address !== null ? address.port : port;
    };
    const listen = async (): Promise<void> => {
      await listenAt(server, { port, host });
      server.on("error", (error) =>
        log.error({ reason: error.message }, "embedded broker: listener trouble"),
      );
      log.info({ host, port: portOf() }, "embedded broker is listening");
    };
    try {
      const binding = await Binding.open(
        listen,
        (reason) => {
          if (reason !== null)
            log.error({ reason }, "embedded broker: its address is not there, and is tried again");
        },
        options.isAddressNeeded,
      );
      return new EmbeddedBroker(aedes, server, sockets, binding, portOf());
    } catch (error) {
      aedes.close();
      throw error;
    }
  }

  /** Reason why it does not listen. Null: it listens. */
  get fault(): string | null {
    return this.#binding.fault;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#binding[Symbol.dispose]();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#aedes.close();
    // Connections without a CONNECT are unknown to aedes, and would keep the listener open.
    for (const socket of this.#sockets) socket.destroy();
    await promise;
  }
}

/** Warnings about clients. A client that is refused connects again at once, and would fill the log. */
const WARNINGS = { perSecond: 0.1, burst: 50 };
type Warn = (details: object, what: string) => void;

/** Installs the checks on connecting and on publishing. */
function control(
  aedes: Aedes,
  { credentials, daemon, root, shared, log }: EmbeddedBrokerOptions,
  warn: Warn,
): void {
  const owners = new TopicOwners(root, shared);
  const daemons = new WeakSet<object>();
  aedes.authenticate = (client, username, password, done) => {
    const isDaemon = username === daemon.username && isSame(password, daemon.password);
    if (isDaemon) daemons.add(client);
    deliverAll(client);
    const isKnown =
      credentials === null || (username === credentials.username && isSame(password, credentials.password()));
    // A client with the daemon's id would disconnect the daemon.
    done(null, isDaemon || (isKnown && client.id !== daemon.clientId));
  };
  aedes.authorizePublish = (client, { topic }, done) => {
    const fault = client === null || daemons.has(client) ? null : owners.refusal(client.id, topic);
    if (fault === null) return done(null);
    warn({ client: client?.id, topic, reason: fault }, "publish refused");
    done(new Error(fault));
  };
  aedes.on("clientDisconnect", (client) => owners.left(client.id));
  const complain = (client: { readonly id: string | null } | null, error: Error) =>
    log.debug({ client: client?.id ?? null, reason: error.message }, "embedded broker: client trouble");
  aedes.on("clientError", complain);
  aedes.on("connectionError", complain);
}

/**
 * Lets every message through to a client. Aedes counts its messages, and takes one with a lower number than the last for a
 * second copy by an overlapping subscription. A retained message and one with acknowledgement are delivered a moment later
 * than the others, so those were lost. A client with overlapping subscriptions gets a copy for each (MQTT 3.1.1, 3.3.5).
 */
const deliverAll = (client: object): void => {
  Object.defineProperty(client, "duplicates", { get: () => ({}) });
};

/** Ends a connection whose packets are too large or too many, before the broker buffers them. */
function guard(socket: Socket, monotonic: () => number, refuse: (reason: string) => void): void {
  const fault = packetGuard(monotonic);
  const read = socket.read.bind(socket);
  // The broker calls read(). A stream in between would copy every message.
  socket.read = (size?: number): unknown => {
    const chunk: unknown = read(size);
    const reason = chunk instanceof Uint8Array ? fault(chunk) : null;
    if (reason === null) return chunk;
    refuse(reason);
    socket.destroy();
    return null;
  };
}

/** Constant time. */
const isSame = (given: Buffer | undefined, expected: string): boolean =>
  timingSafeEqual(digest(given ?? ""), digest(expected));

const digest = (text: Buffer | string): Buffer => createHash("sha256").update(text).digest();

/** Enough for a CONNECT with its last will. An unauthenticated client must not fill the broker's buffers. */
const FIRST_PACKET_BYTES = 4 * 1024;
const PACKET_BYTES = 256 * 1024;
/** A charger that publishes 100 topics a second stays far below this. */
const PACKETS_PER_SECOND = 1_000;
/** Most bytes of the remaining length (MQTT 3.1.1, 2.2.3). */
const LENGTH_BYTES = 4;

/**
 * Checks the packet framing of one MQTT connection, chunk by chunk. Null: fine. Otherwise the reason to
 * close it: a packet that is too large, too many packets, or no MQTT. `now`: monotonic ms.
 */
export function packetGuard(now: () => number): (chunk: Uint8Array) => string | null {
  let isFirst = true;
  /** Payload bytes of the current packet that have not arrived yet. */
  let pending = 0;
  /** Bytes of the remaining length read so far. Null: the next byte is a packet type. */
  let lengthBytes: number | null = null;
  let length = 0;
  let second = Math.floor(now() / 1000);
  let packets = 0;

  const begins = (): string | null => {
    const most = isFirst ? FIRST_PACKET_BYTES : PACKET_BYTES;
    isFirst = false;
    lengthBytes = null;
    pending = length;
    const current = Math.floor(now() / 1000);
    packets = current === second ? packets + 1 : 1;
    second = current;
    if (length > most) return `a packet of ${length} bytes, at most ${most} are taken`;
    return packets > PACKETS_PER_SECOND ? `more than ${PACKETS_PER_SECOND} packets in a second` : null;
  };

  return (chunk) => {
    for (let at = 0; at < chunk.length;) {
      if (pending > 0) {
        const skipped = Math.min(pending, chunk.length - at);
        pending -= skipped;
        at += skipped;
        continue;
      }
      const byte = chunk[at] ?? 0;
      at += 1;
      if (lengthBytes === null) {
        [lengthBytes, length] = [0, 0];
        continue;
      }
      length += (byte & 0x7f) * 128 ** lengthBytes;
      lengthBytes += 1;
      if (byte < 0x80) {
        const fault = begins();
        if (fault !== null) return fault;
      } else if (lengthBytes === LENGTH_BYTES) return "not MQTT: a remaining length of more than four bytes";
    }
    return null;
  };
}
