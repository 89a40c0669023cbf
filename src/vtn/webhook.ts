import { isIP, type Socket } from "node:net";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";

import { Binding, limitConnections, oneRequestAtATime } from "../platform/listener.ts";
import {
  headRefusal,
  type Reception,
  type ReceptionOptions,
  receive,
  type Refused,
  refused,
} from "./reception.ts";
import { type RefusalCount, type RefusalReason, type RefusedDeliveries, Refusals } from "./refusals.ts";
import { dropRest, RequestBodies, type ListenerTls, renewTls, webhookServer } from "./webhookServer.ts";

/** Address, limits and callbacks of the listener. */
export interface WebhookOptions extends ReceptionOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** True: it is an error that this machine lacks the address. Absent: the address is awaited. */
  readonly isAddressNeeded?: boolean;
  readonly path: string;
  /** Null: plain HTTP. */
  readonly tls: ListenerTls | null;
  /**
   * Addresses and networks whose `X-Forwarded-For` is trusted. True: any peer is trusted, but its value
   * appears only in the log, because any sender can set that header.
   */
  readonly trustProxy: boolean | readonly string[];
  /** Called with each change of `WebhookListener.unbound`. */
  readonly onUnbound?: (fault: string | null) => void;
  /** A request or a connection was rejected. */
  readonly onRefused: (reason: RefusalReason) => void;
  /** The port is bound before deliveries can be ingested. Requests wait for this promise. */
  readonly up: Promise<void>;
  readonly log: Logger;
}

const MAX_BODY = 1024 * 1024;
/** Bytes of all bodies in flight. */
const BODY_BUDGET = 32 * MAX_BODY;
/** Without authentication the body is ignored, so little of it is read. */
const MAX_HINT = 16 * 1024;
/**
 * Each connection costs memory, also before authentication: about 60 kB with TLS, a quarter of that without.
 * Connections of the partner have a quota of their own. Both have room for a burst with one connection per event.
 */
const MAX_CONNECTIONS = { plain: 2048, tls: 512 };
const CLOSING_MS = 500;

/** The listener to which the partner delivers events. A 202 means that the delivery survives a power cut. */
export class WebhookListener implements AsyncDisposable {
  readonly port: number;
  readonly #app: FastifyInstance;
  readonly #binding: Binding;
  readonly #refusals: Refusals;

  private constructor(app: FastifyInstance, binding: Binding, refusals: Refusals, port: number) {
    this.#app = app;
    this.#binding = binding;
    this.#refusals = refusals;
    this.port = port;
  }

  /** Rejects if the address cannot be bound. One that this machine lacks is bound once it is there. */
  static async start(options: WebhookOptions): Promise<WebhookListener> {
    const refusals = new Refusals(options);
    const app = listenerApp(options, refusals);
    const listening = { host: options.host, port: options.port, backlog: MAX_CONNECTIONS.plain };
    const binding = await Binding.open(
      () => app.listen(listening),
      (reason) => {
        options.onUnbound?.(reason);
        if (reason === null) options.log.info(listening, "the webhook listens now");
        else
          options.log.error({ reason }, "no webhook: this machine lacks its address, which is tried again");
      },
      options.isAddressNeeded,
    );
    const address = app.server.address();
    const port = typeof address === "object" && address !== null ? address.port : options.port;
    return new WebhookListener(app, binding, refusals, port);
  }

  /** See `renewTls`. */
  renew(tls: ListenerTls): string | null {
    return renewTls(this.#app.server, tls);
  }

  /** Reason why it does not listen. Null: it listens. */
  get unbound(): string | null {
    return this.#binding.fault;
  }

  /** Null: none since the last authenticated delivery. */
  refusedDeliveries(): RefusedDeliveries | null {
    return this.#refusals.refusedDeliveries();
  }

  /** Requests rejected since the start, by reason. */
  refused(): Readonly<Record<string, RefusalCount>> {
    return this.#refusals.view();
  }

  /** Answers open requests and accepts no new ones. Slow senders are disconnected, so that they do not delay a stop. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#binding[Symbol.dispose]();
    const enough = setTimeout(() => this.#app.server.closeAllConnections(), CLOSING_MS);
    await this.#app.close();
    clearTimeout(enough);
  }
}

/** Answers to senders that have not proven to be the partner, and the record of everything that is refused. */
class UnprovenSenders {
  readonly #refusals: Refusals;
  readonly #trustProxy: WebhookOptions["trustProxy"];

  constructor(refusals: Refusals, { trustProxy }: Pick<WebhookOptions, "trustProxy">) {
    this.#refusals = refusals;
    this.#trustProxy = trustProxy;
  }

  /** Records a refusal. `status` null: there is no answer. */
  note(reason: RefusalReason, explanation: string, from: string, status: number | null = null): void {
    this.#refusals.record({ reason, explanation, from, status });
  }

  /** Handles a request without proof that it is the partner's. The partner, from the same address, still gets in. */
  answer(request: FastifyRequest, reply: FastifyReply, answer: () => FastifyReply): FastifyReply {
    const { raw, ip } = request;
    dropRest(raw);
    switch (this.#refusals.treatment(this.#paceKey(request))) {
      case "answer":
        return answer();
      case "tooMany":
        this.note(
          "tooMany",
          "too many unproven requests from one address: the connection is closed",
          ip,
          429,
        );
        return reply
          .code(429)
          .headers({ "retry-after": "5", connection: "close" })
          .send({ error: "too many requests" });
      case "close":
        this.note("tooMany", "far too many unproven requests from one address: connections are closed", ip);
        reply.hijack();
        raw.socket.destroy();
        return reply;
    }
  }

  refuse(request: FastifyRequest, reply: FastifyReply, why: Refused): FastifyReply {
    const { status, reason, error, explanation } = why;
    return this.answer(request, reply, () => {
      this.note(reason, explanation, request.ip, status);
      return reply.code(status).send({ error });
    });
  }

  /** Only a named proxy is trusted here: otherwise a sender could invent addresses, each with a pace of its own. */
  #paceKey({ ip, raw }: FastifyRequest): string {
    return typeof this.#trustProxy !== "boolean" && isIP(ip) !== 0 ? ip : (raw.socket.remoteAddress ?? "");
  }
}

function listenerApp(options: WebhookOptions, refusals: Refusals): FastifyInstance {
  const { path, scheme, now, log } = options;
  const senders = new UnprovenSenders(refusals, options);
  const app = emptyApp(options, senders);
  const most = options.tls === null ? MAX_CONNECTIONS.plain : MAX_CONNECTIONS.tls;
  const prove = limitConnections(app.server, {
    unproven: most,
    proven: most,
    onDropped: (from) =>
      senders.note("tooManyConnections", "too many connections: one was closed to let another in", from),
  });
  app.addHook("onRequest", () => options.up);
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404) {
      const known = request.url.split("?")[0] === path;
      if (known) reply.header("allow", "GET, POST");
      const why = known ? refused(405, "method", "method not allowed") : NOT_FOUND;
      return senders.refuse(request, reply, why);
    }
    const why = request.method === "POST" ? headRefusal(scheme, request.headers, now()) : null;
    return why === null ? undefined : senders.refuse(request, reply, why);
  });
  app.get<{ Querystring: { readonly echo?: unknown } }>(path, async (request, reply) => {
    const { echo } = request.query;
    if (echo === undefined)
      return senders.answer(request, reply, () => reply.type("text/plain").send(WHAT_THIS_IS));
    if (typeof echo === "string" && /^[A-Za-z0-9_-]{1,256}$/.test(echo))
      return senders.answer(request, reply, () => reply.type("text/plain").send(echo));
    return senders.refuse(request, reply, refused(400, "echo", "echo: 1 to 256 of A-Z a-z 0-9 _ -"));
  });
  app.post(
    path,
    deliveryHandler(options, senders, (socket) => {
      prove(socket);
      refusals.authenticated();
    }),
  );
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500)
      return senders.refuse(request, reply, refused(status, "unreadable", "the request cannot be read"));
    log.error({ err: error }, "a webhook request failed");
    return reply.code(500).send({ error: "internal error" });
  });
  return app;
}

const NOT_FOUND = refused(404, "notFound", "not found");

/** Fastify without a route. It parses no body, as the signature covers the raw bytes. */
function emptyApp({ tls, trustProxy }: WebhookOptions, senders: UnprovenSenders): FastifyInstance {
  const PIPELINED = "a request came before the answer to another: the connection is closed";
  const app = Fastify({
    // Without named proxies, one hop counts: the last address in the header. Earlier addresses are the
    // sender's claim.
    trustProxy:
      typeof trustProxy === "boolean"
        ? (_address: string, hop: number) => trustProxy && hop === 0
        : [...trustProxy],
    exposeHeadRoutes: false,
    serverFactory: (handler) =>
      webhookServer(
        tls,
        oneRequestAtATime(handler, (from) => senders.note("pipelined", PIPELINED, from)),
      ),
    frameworkErrors: (_error, request, reply) => {
      senders.refuse(request, reply, NOT_FOUND);
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  return app;
}

/** Handler of a POST: reads the body, and answers after the commit. `proven`: called where it is the partner's. */
function deliveryHandler(
  options: WebhookOptions,
  senders: UnprovenSenders,
  proven: (socket: Socket) => void,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  const reception = receive(options);
  const isHint = options.scheme.kind === "none";
  const most = isHint ? MAX_HINT : MAX_BODY;
  const DROPPED = "an unfinished body was dropped with its connection: all bodies together are too large";
  const bodies = new RequestBodies(BODY_BUDGET, (from) => senders.note("bodyDropped", DROPPED, from));
  return async (request, reply) => {
    const body = await bodies.read(request.raw, reply.raw, most);
    switch (body.kind) {
      case "aborted":
        return reply.hijack();
      case "tooLarge":
        // The list also holds the events of a rejected delivery.
        if (isHint) options.hint("list");
        return senders.refuse(request, reply, refused(413, "tooLarge", `over ${most} bytes`));
      case "noRoom":
        senders.note(
          "noRoom",
          "the bodies that wait for their answers fill the memory set aside for them",
          request.ip,
          503,
        );
        dropRest(request.raw);
        return reply.code(503).header("retry-after", "1").send({ error: "busy" });
      case "whole": {
        const received = await reception(request.headers, body.bytes, options.now());
        if (received.kind === "ingested" ? !received.hint : received.proven) proven(request.raw.socket);
        if (received.kind === "ingested") return reply.code(202).send(acknowledgement(received));
        const { status, reason, error, explanation, retryAfter } = received;
        if (retryAfter !== null) reply.header("retry-after", String(retryAfter));
        if (!received.proven) return senders.refuse(request, reply, { status, reason, error, explanation });
        senders.note(reason, `of the partner: ${explanation}`, request.ip, status);
        return reply.code(status).send({ error });
      }
    }
  };
}

const WHAT_THIS_IS = "This is the webhook of setpointd. It takes deliveries of events: POST, JSON.\n";

const acknowledgement = ({ ingested, hint }: Extract<Reception, { kind: "ingested" }>) =>
  hint ? { ...ingested, hint: true } : ingested;
