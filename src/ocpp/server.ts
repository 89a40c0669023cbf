import { timingSafeEqual, createHash } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Logger } from "pino";
import { WebSocket, WebSocketServer } from "ws";

import type { OcppConfig, StationConfig } from "../config/ocpp.ts";
import {
  Binding,
  bucket,
  bucketPerAddress,
  limitConnections,
  createHttpServer,
  createHttpsServer,
  listenAt,
  renewCertificate,
} from "../platform/listener.ts";
import { oneLine } from "../platform/text.ts";
import { Incoming, slowDown } from "./calls.ts";
import type { Link } from "./relay.ts";
import type { Station } from "./station.ts";
import { RefusedAttempts } from "./stationCounts.ts";
import type { Dialect } from "./wire/dialect.ts";

export interface ServerOptions {
  readonly config: OcppConfig;
  readonly stations: ReadonlyMap<string, Station>;
  /** In the order of our preference. */
  readonly dialects: readonly Dialect[];
  readonly monotonic: () => number;
  readonly log: Logger;
}

/** Largest message of a station. Answers to GetConfiguration without keys are the longest. */
const LARGEST_MESSAGE_BYTES = 256 * 1024;
/** A station that does not read is disconnected beyond this. */
const MOST_UNSENT_BYTES = 1024 * 1024;
/** Calls of one station. Beyond it they wait. */
const PACE = { perSecond: 50, burst: 500 };
/** Messages of one station. Beyond it we stop reading from its socket for a while. */
const MOST_READ = { perSecond: 1_000, burst: 5_000 };
/** Attempts to log in from one address. */
const LOGIN_PACE = { perSecond: 20, burst: 4_000 };
const PING_EVERY_MS = 30_000;
/** A heartbeat may be hours away, as another central system wishes. After this time a pong is shown as a sign of life. */
const QUIET_MS = 60_000;
const RENEW_EVERY_MS = 60_000;

const contextOf = ({ own, clientCa }: NonNullable<OcppConfig["tls"]>) => ({
  ...own.current(),
  minVersion: "TLSv1.2" as const,
  ...(clientCa === null ? {} : { ca: clientCa.current() }),
});

/** The listener for chargers: logs stations in, and passes their messages on. */
export class StationServer implements AsyncDisposable {
  readonly #options: ServerOptions;
  readonly #server: Server;
  #binding: Binding | undefined;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload: LARGEST_MESSAGE_BYTES,
    perMessageDeflate: false,
    clientTracking: true,
    handleProtocols: (_offered, request) => this.#chosen.get(request)?.subprotocol ?? false,
  });
  /** Versions of the connections that are being opened. */
  readonly #chosen = new WeakMap<IncomingMessage, Dialect>();
  readonly #mayLogin: (address: string) => boolean;
  /** Attempts since the start. */
  readonly refused = new RefusedAttempts();
  readonly #pinging: NodeJS.Timeout;
  readonly #renewing: NodeJS.Timeout;
  /** Text of the certificate in use. "": no TLS. */
  #certificate: string;

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#mayLogin = bucketPerAddress(LOGIN_PACE, options.monotonic);
    const { tls, stations } = options.config;
    const settings = { headersTimeout: 10_000, requestTimeout: 10_000, maxHeaderSize: 16 * 1024 };
    this.#server =
      tls === null
        ? createHttpServer(settings)
        : createHttpsServer({
            ...settings,
            ...contextOf(tls),
            ...(tls.clientCa === null ? {} : { requestCert: true, rejectUnauthorized: false }),
          });
    this.#certificate = tls === null ? "" : tls.own.current().cert;
    const most = stations.length * 2 + 64;
    const prove = limitConnections(this.#server, {
      unproven: most,
      proven: most,
      onDropped: () => undefined,
    });
    this.#server.on("request", (_request, response) => {
      response.writeHead(426, { "content-type": "text/plain", connection: "close" });
      response.end("this is an OCPP central system: connect with a WebSocket\n");
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#onUpgrade(request, socket, head, prove),
    );
    this.#pinging = setInterval(() => this.#pingAll(), PING_EVERY_MS);
    this.#renewing = setInterval(() => {
      if (tls !== null && tls.own.current().cert !== this.#certificate) this.reload();
    }, RENEW_EVERY_MS);
  }

  static async start(options: ServerOptions): Promise<StationServer> {
    const server = new StationServer(options);
    const { log } = options;
    const { listen } = options.config;
    const onChange = (reason: string | null): void =>
      reason === null
        ? log.info(listen, "the listener for chargers listens now")
        : log.error({ reason }, "no charger can connect: ocpp.listen is not there, and is tried again");
    server.#binding = await Binding.open(() => listenAt(server.#server, listen), onChange);
    return server;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : this.#options.config.listen.port;
  }

  /** New connections get the present certificate and authority. Open ones keep theirs. */
  reload(): void {
    const { config, log } = this.#options;
    const { tls } = config;
    if (tls === null) return log.info("no certificate is configured");
    const fault = tls.own.fault() ?? tls.clientCa?.fault() ?? renewCertificate(this.#server, contextOf(tls));
    if (fault !== null) return log.error({ fault }, "the certificate cannot be used: the former one stays");
    this.#certificate = tls.own.current().cert;
    log.info("new connections get the present certificate");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#pinging);
    clearInterval(this.#renewing);
    this.#binding?.[Symbol.dispose]();
    for (const socket of this.#sockets.clients) socket.terminate();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #onUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    prove: (socket: IncomingMessage["socket"]) => void,
  ): void {
    socket.on("error", () => socket.destroy());
    const address = request.socket.remoteAddress ?? "?";
    const refuse = (status: string, identity: string, reason: string, more = ""): void => {
      this.#remember(identity, address, reason);
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n${more}\r\n`);
    };
    if (!this.#mayLogin(address))
      return refuse("429 Too Many Requests", "", "too many attempts from one address");
    const identity = identityOf(request.url ?? "", this.#options.config.path);
    if (identity === null)
      return refuse("404 Not Found", "", `the path is not ${this.#options.config.path}/<identity>`);
    const station = this.#options.stations.get(identity);
    if (station === undefined)
      return refuse("404 Not Found", identity, "this identity is not in the configuration");
    const denied = denial(request, station.config);
    if (denied !== null) {
      station.counts.add("refusedLogins");
      return refuse("401 Unauthorized", identity, denied, 'WWW-Authenticate: Basic realm="ocpp"\r\n');
    }
    const named = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((part) => part.trim());
    const offered = this.#options.dialects.filter(({ subprotocol }) => named.includes(subprotocol));
    const dialect = station.refusedVersions.best(offered);
    if (dialect === undefined) {
      const known = this.#options.dialects.map(({ subprotocol }) => subprotocol).join(", ");
      station.counts.add("refusedLogins");
      return refuse("400 Bad Request", identity, `it offers none of the subprotocols ${known}`);
    }
    prove(request.socket);
    this.#chosen.set(request, dialect);
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) =>
      this.#accept(webSocket, station, { dialect, offered }, request),
    );
  }

  #accept(
    socket: WebSocket,
    station: Station,
    { dialect, offered }: Pick<Link, "offered"> & { readonly dialect: Dialect },
    request: IncomingMessage,
  ): void {
    const address = request.socket.remoteAddress ?? "?";
    const authorization = request.headers.authorization ?? null;
    const { monotonic } = this.#options;
    const mayRead = bucket(MOST_READ, monotonic);
    const link: Link = {
      address,
      authorization,
      offered,
      send: (text) => {
        if (socket.bufferedAmount > MOST_UNSENT_BYTES) socket.terminate();
        else socket.send(text, () => undefined);
      },
      close: (reason) => {
        socket.close(1000, reason.slice(0, 100));
        // A station that does not answer the closing is cut off.
        setTimeout(() => socket.terminate(), 2_000).unref();
      },
    };
    const incoming = new Incoming({
      mayPass: bucket(PACE, monotonic),
      pass: (text) => station.onText(link, text),
      onTooMany: () => station.counts.add("flooded"),
    });
    let fault = "";
    let heardAt = monotonic();
    alive.add(socket);
    socket.on("pong", () => {
      alive.add(socket);
      if (monotonic() - heardAt < QUIET_MS) return;
      heardAt = monotonic();
      for (const outlet of station.outlets) outlet.publish();
    });
    socket.on("message", (content: Buffer, isBinary) => {
      heardAt = monotonic();
      alive.add(socket);
      if (!mayRead() && !socket.isPaused) slowDown(socket);
      incoming.receive(isBinary ? "" : content.toString("utf8"));
    });
    socket.on("error", (error) => {
      fault = error.message;
      if ("code" in error && error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH")
        station.counts.add("tooLarge");
    });
    socket.on("close", (code, reason) => {
      incoming[Symbol.dispose]();
      station.onClosed(link, fault || oneLine(reason.toString("utf8")) || `closed with code ${code}`);
    });
    station.attach(link, dialect);
  }

  #pingAll(): void {
    for (const socket of this.#sockets.clients) {
      if (!alive.delete(socket) && !socket.isPaused) socket.terminate();
      else if (socket.readyState === WebSocket.OPEN) socket.ping();
    }
  }

  #remember(identity: string, address: string, reason: string): void {
    const count = this.refused.add(identity, address, reason);
    if (count === 1) this.#options.log.warn({ station: identity, address, reason }, "refused a charger");
  }
}

/** Sockets that sent something since the last ping. */
const alive = new WeakSet<WebSocket>();

/** The identity in a URL. Null: another path, or not readable. */
function identityOf(url: string, path: string): string | null {
  const [place = ""] = url.split("?", 1);
  if (!place.startsWith(`${path}/`)) return null;
  try {
    // Some makes append "/<identity>" to a URL that ends with a slash, or end with one themselves.
    const identity = decodeURIComponent(place.slice(path.length).replaceAll(/^\/+|\/+$/g, ""));
    return /^[^\s/\p{Cc}]{1,48}$/u.test(identity) ? identity : null;
  } catch {
    return null;
  }
}

const digest = (content: string | Buffer): Buffer => createHash("sha256").update(content).digest();
const isSame = (a: string | Buffer, b: Buffer): boolean => timingSafeEqual(digest(a), digest(b));
/** Bytes of an AuthorizationKey of OCPP 1.6J, section 6.2. Its text is the hexadecimal one. */
const bytesOf = (key: string): Buffer | string =>
  /^[0-9a-f]{40}$/i.test(key) ? Buffer.from(key, "hex") : key;

/** Reason why a login is refused. Null: it is accepted. */
function denial({ headers, socket }: IncomingMessage, config: StationConfig): string | null {
  if (config.certificate !== null) {
    const peer = socket instanceof TLSSocket && socket.authorized ? socket.getPeerCertificate() : null;
    if (peer?.subject?.CN !== config.certificate)
      return "its client certificate is missing or not the right one";
  }
  if (config.password === null) return null;
  const [, encoded = ""] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(headers.authorization ?? "") ?? [];
  if (encoded === "") return "it sends no password (Basic authentication)";
  // An identity may hold colons.
  const [given, name] = [Buffer.from(encoded, "base64"), Buffer.from(`${config.identity}:`)];
  const password = given.subarray(name.length);
  const isRight = config.password().some((key) => isSame(key, password) || isSame(bytesOf(key), password));
  return isRight && given.indexOf(name) === 0 ? null : "its identity and password do not match";
}
