import { type IncomingMessage, type RequestListener, type Server, createServer } from "node:http";
import { isIP } from "node:net";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";
import type { KeyPair } from "../config/pem.ts";
import { limitConnections } from "./crowd.ts";
import { type HeaderFields, headerText, isPlain, readsAsJson } from "./headers.ts";
import { type Pace, bucket, bucketPerAddress } from "./rate.ts";
import { type Reception, type ReceptionOptions, receive } from "./reception.ts";
import { type Scheme, isSigned } from "./signature.ts";

/** Where to listen, and what to do with what arrives. */
export interface WebhookOptions extends ReceptionOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly path: string;
  /** Null: plain HTTP. */
  readonly tls: KeyPair | null;
  /** Behind a reverse proxy: the address of the sender is in `X-Forwarded-For`. */
  readonly trustProxy: boolean;
  /** The address is taken before there is anyone to take a delivery: requests wait for that. */
  readonly up: Promise<void>;
  readonly log: Logger;
}

const MAX_BODY = 1024 * 1024;
/** Bytes that a refused sender may still write: many do so before they read the answer. */
const MOST_IN_VAIN = 8 * MAX_BODY;
const MAX_CONNECTIONS = 256;
/** Milliseconds: a sender that dawdles gives its connection back (F61). */
const TIMEOUTS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1000,
};
const HANDSHAKE_TIMEOUT = 5000;
const CLOSING_MS = 500;
/** For each address, of whatever is not signed correctly. */
const STRANGER_PACE: Pace = { perSecond: 5, burst: 60 };
const LOG_PACE: Pace = { perSecond: 1, burst: 5 };

/** Where the partner delivers events: DESIGN 6.3. A 202 means that the delivery survives a power cut. */
export class WebhookListener implements AsyncDisposable {
  readonly port: number;
  readonly #app: FastifyInstance;

  private constructor(app: FastifyInstance, port: number) {
    this.#app = app;
    this.port = port;
  }

  /** Rejects when the address cannot be listened on. */
  static async start(options: WebhookOptions): Promise<WebhookListener> {
    const app = listenerApp(options);
    await app.listen({ host: options.host, port: options.port });
    const address = app.server.address();
    return new WebhookListener(
      app,
      typeof address === "object" && address !== null ? address.port : options.port,
    );
  }

  /** New connections get this certificate; those that are there keep theirs. A text says why it cannot be used: the one before stays. */
  renew(tls: KeyPair): string | null {
    const { server } = this.#app;
    if (!(server instanceof TlsServer)) return "this listener has no TLS";
    try {
      server.setSecureContext(tls);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Answers what is under way, takes nothing new; whoever dawdles does not hold up a stop. */
  async [Symbol.asyncDispose](): Promise<void> {
    const enough = setTimeout(() => this.#app.server.closeAllConnections(), CLOSING_MS);
    await this.#app.close();
    clearTimeout(enough);
  }
}

interface Refusal {
  readonly status: number;
  readonly error: string;
}

function listenerApp(options: WebhookOptions): FastifyInstance {
  const { path, scheme, log, monotonic, now } = options;
  const reception = receive(options);
  const mayRefuse = bucketPerAddress(STRANGER_PACE, monotonic);
  const mayLog = bucket(LOG_PACE, monotonic);

  /** Of a sender who has not shown that it is the partner. The partner, from the same address, still gets in. */
  const refuse = (request: FastifyRequest, reply: FastifyReply, { status, error }: Refusal): FastifyReply => {
    if (mayLog())
      log.warn({ status, error, from: request.ip, method: request.method }, "webhook request refused");
    dropRest(request.raw);
    if (mayRefuse(isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? "") : request.ip))
      return reply.code(status).send({ error });
    return reply.code(429).header("retry-after", "5").send({ error: "too many requests" });
  };

  const app = Fastify({
    bodyLimit: MAX_BODY,
    // One hop: what the own proxy put last. What stands before it is what the sender says.
    trustProxy: (_address: string, hop: number) => options.trustProxy && hop === 0,
    exposeHeadRoutes: false,
    serverFactory: (handler) => {
      const server = serverFor(options.tls, handler);
      limitConnections(server, MAX_CONNECTIONS, (from) => {
        if (mayLog())
          log.warn({ from, open: MAX_CONNECTIONS }, "webhook connection closed to let another in");
      });
      return server;
    },
    frameworkErrors: (_error, request, reply) => {
      refuse(request, reply, { status: 404, error: "not found" });
    },
  });
  // The signature covers the bytes as they came: nothing may parse them before us.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  app.addHook("onRequest", () => options.up);
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404) {
      const known = request.url.split("?")[0] === path;
      if (known) reply.header("allow", "GET, POST");
      const refusal = known
        ? { status: 405, error: "method not allowed" }
        : { status: 404, error: "not found" };
      return refuse(request, reply, refusal);
    }
    const refusal = request.method === "POST" ? headRefusal(scheme, request.headers) : null;
    return refusal === null ? undefined : refuse(request, reply, refusal);
  });

  app.get<{ Querystring: { readonly echo?: unknown } }>(path, async (request, reply) => {
    const { echo } = request.query;
    if (typeof echo === "string" && /^[A-Za-z0-9_-]{1,256}$/.test(echo))
      return reply.type("text/plain").send(echo);
    return refuse(request, reply, { status: 400, error: "echo: 1 to 256 of A-Z a-z 0-9 _ -" });
  });

  app.post(path, async (request, reply) => {
    const rawBody = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const received = await reception(request.headers, rawBody, now());
    if (received.kind === "refused" && !received.proven) return refuse(request, reply, received);
    if (received.kind === "refused" && mayLog())
      log.warn({ status: received.status, error: received.error }, "delivery of the partner refused");
    return answer(reply, received);
  });

  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status === 413) return refuse(request, reply, { status, error: `over ${MAX_BODY} bytes` });
    if (status < 500) return refuse(request, reply, { status, error: "the request cannot be read" });
    log.error({ err: error }, "a webhook request failed");
    return reply.code(500).send({ error: "internal error" });
  });
  return app;
}

/** What the head of a request already rules out: then its body is not waited for. */
function headRefusal(scheme: Scheme, headers: HeaderFields): Refusal | null {
  const type = headerText(headers, "content-type");
  if (type === null ? hasBody(headers) : !readsAsJson(type))
    return { status: 415, error: "JSON in UTF-8 only" };
  if (!isPlain(headers)) return { status: 415, error: "no content encoding" };
  return isSigned(scheme, headers) ? null : { status: 401, error: "unauthorized" };
}

const hasBody = (headers: HeaderFields): boolean =>
  headers["transfer-encoding"] !== undefined || (headerText(headers, "content-length") ?? "0") !== "0";

/** The rest of a body that nobody needs; a sender that goes on for ever loses its connection (F62). */
function dropRest(request: IncomingMessage): void {
  if (request.complete) return;
  let passed = 0;
  request.on("data", (piece: Buffer) => {
    passed += piece.length;
    if (passed > MOST_IN_VAIN) request.destroy();
  });
}

function answer(reply: FastifyReply, received: Reception): FastifyReply {
  switch (received.kind) {
    case "taken":
      return reply.code(202).send(received.hint ? { ...received.taken, hint: true } : received.taken);
    case "refused": {
      const { status, error, retryAfter } = received;
      if (retryAfter !== null) reply.header("retry-after", String(retryAfter));
      return reply.code(status).send({ error });
    }
  }
}

const serverFor = (tls: KeyPair | null, handler: RequestListener): Server =>
  tls === null
    ? createServer(TIMEOUTS, handler)
    : createTlsServer({ ...TIMEOUTS, ...tls, handshakeTimeout: HANDSHAKE_TIMEOUT }, handler);
