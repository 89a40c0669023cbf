import { isIP } from "node:net";
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";

import type { Instant } from "../domain/units.ts";
import { limitConnections, oneRequestAtATime } from "../platform/senderLimits.ts";
import { hasBody, type HeaderFields, headerText, isPlain, readsAsJson } from "./http.ts";
import { type Reception, type ReceptionOptions, receive } from "./reception.ts";
import {
  type AuthFault,
  headerFault,
  signatureDiffers,
  type RefusalCount,
  type RefusalReason,
  type RefusedDeliveries,
  Refusals,
} from "./refusals.ts";
import { type Scheme, verify } from "./signature.ts";
import { dropRest, RequestBodies, type ListenerTls, renewTls, webhookServer } from "./webhookServer.ts";

/** Address, limits and callbacks of the listener. */
export interface WebhookOptions extends ReceptionOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly path: string;
  /** Null: plain HTTP. */
  readonly tls: ListenerTls | null;
  /**
   * Addresses and networks whose `X-Forwarded-For` is trusted. True: any peer is trusted, but its value
   * appears only in the log, because any sender can set that header.
   */
  readonly trustProxy: boolean | readonly string[];
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
 * Each connection costs memory, also before authentication: about 60 kB with TLS. Connections of the partner have a
 * quota of their own. Both have room for a burst with one connection per event.
 */
const MAX_CONNECTIONS = { unproven: 512, proven: 512 };
const CLOSING_MS = 500;

/** The listener to which the partner delivers events. A 202 means that the delivery survives a power cut. */
export class WebhookListener implements AsyncDisposable {
  readonly port: number;
  readonly #app: FastifyInstance;
  readonly #refusals: Refusals;

  private constructor(app: FastifyInstance, refusals: Refusals, port: number) {
    this.#app = app;
    this.#refusals = refusals;
    this.port = port;
  }

  /** Rejects if the address cannot be bound. */
  static async start(options: WebhookOptions): Promise<WebhookListener> {
    const refusals = new Refusals(options);
    const app = listenerApp(options, refusals);
    await app.listen({ host: options.host, port: options.port });
    const address = app.server.address();
    const port = typeof address === "object" && address !== null ? address.port : options.port;
    return new WebhookListener(app, refusals, port);
  }

  /** See `renewTls`. */
  renew(tls: ListenerTls): string | null {
    return renewTls(this.#app.server, tls);
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
    const enough = setTimeout(() => this.#app.server.closeAllConnections(), CLOSING_MS);
    await this.#app.close();
    clearTimeout(enough);
  }
}

interface Refused {
  readonly status: number;
  readonly reason: RefusalReason;
  /** Sent to the sender. */
  readonly error: string;
  /** Logged for the operator. */
  readonly explanation: string;
}

const refused = (status: number, reason: RefusalReason, error: string, explanation = error): Refused => ({
  status,
  reason,
  error,
  explanation,
});

function listenerApp(options: WebhookOptions, refusals: Refusals): FastifyInstance {
  const { path, scheme, now, log, trustProxy } = options;
  const isHint = scheme.kind === "none";
  const reception = receive(options);

  const note = (reason: RefusalReason, explanation: string, from: string, status: number | null): void =>
    refusals.record({ reason, explanation, from, status });
  const bodies = new RequestBodies(BODY_BUDGET, (from) =>
    note(
      "bodyDropped",
      "an unfinished body was dropped with its connection: all bodies together are too large",
      from,
      null,
    ),
  );
  /** Only a named proxy is trusted here: otherwise a sender could invent addresses, each with a pace of its own. */
  const paceKey = ({ ip, raw }: FastifyRequest): string =>
    typeof trustProxy !== "boolean" && isIP(ip) !== 0 ? ip : (raw.socket.remoteAddress ?? "");

  /** Handles a request without proof that it is the partner's. The partner, from the same address, still gets in. */
  const unproven = (
    request: FastifyRequest,
    reply: FastifyReply,
    answer: () => FastifyReply,
  ): FastifyReply => {
    const { raw, ip } = request;
    dropRest(raw);
    switch (refusals.treatment(paceKey(request))) {
      case "answer":
        return answer();
      case "tooMany":
        note("tooMany", "too many unproven requests from one address: the connection is closed", ip, 429);
        return reply
          .code(429)
          .headers({ "retry-after": "5", connection: "close" })
          .send({ error: "too many requests" });
      case "close":
        note("tooMany", "far too many unproven requests from one address: connections are closed", ip, null);
        reply.hijack();
        raw.socket.destroy();
        return reply;
    }
  };

  const refuse = (request: FastifyRequest, reply: FastifyReply, why: Refused): FastifyReply => {
    const { status, reason, error, explanation } = why;
    return unproven(request, reply, () => {
      note(reason, explanation, request.ip, status);
      return reply.code(status).send({ error });
    });
  };

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
        options.tls,
        oneRequestAtATime(handler, (from) =>
          note(
            "pipelined",
            "a request came before the answer to another: the connection is closed",
            from,
            null,
          ),
        ),
      ),
    frameworkErrors: (_error, request, reply) => {
      refuse(request, reply, refused(404, "notFound", "not found"));
    },
  });
  const prove = limitConnections(app.server, {
    ...MAX_CONNECTIONS,
    onDropped: (from) =>
      note("tooManyConnections", "too many connections: one was closed to let another in", from, null),
  });
  // The signature covers the raw bytes, so Fastify must not parse the body.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));

  app.addHook("onRequest", () => options.up);
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404) {
      const known = request.url.split("?")[0] === path;
      if (known) reply.header("allow", "GET, POST");
      return refuse(
        request,
        reply,
        known ? refused(405, "method", "method not allowed") : refused(404, "notFound", "not found"),
      );
    }
    const why = request.method === "POST" ? headRefusal(scheme, request.headers, now()) : null;
    return why === null ? undefined : refuse(request, reply, why);
  });

  app.get<{ Querystring: { readonly echo?: unknown } }>(path, async (request, reply) => {
    const { echo } = request.query;
    if (echo === undefined)
      return unproven(request, reply, () => reply.type("text/plain").send(WHAT_THIS_IS));
    if (typeof echo === "string" && /^[A-Za-z0-9_-]{1,256}$/.test(echo))
      return unproven(request, reply, () => reply.type("text/plain").send(echo));
    return refuse(request, reply, refused(400, "echo", "echo: 1 to 256 of A-Z a-z 0-9 _ -"));
  });

  app.post(path, async (request, reply) => {
    const most = isHint ? MAX_HINT : MAX_BODY;
    const body = await bodies.read(request.raw, reply.raw, most);
    switch (body.kind) {
      case "aborted":
        return reply.hijack();
      case "tooLarge":
        // The list also holds the events of a rejected delivery.
        if (isHint) options.hint("list");
        return refuse(request, reply, refused(413, "tooLarge", `over ${most} bytes`));
      case "noRoom":
        note(
          "noRoom",
          "the bodies that wait for their answers fill the memory set aside for them",
          request.ip,
          503,
        );
        dropRest(request.raw);
        return reply.code(503).header("retry-after", "1").send({ error: "busy" });
      case "whole": {
        const received = await reception(request.headers, body.bytes, now());
        if (received.kind === "taken" ? !received.hint : received.proven) {
          prove(request.raw.socket);
          refusals.authenticated();
        }
        if (received.kind === "taken") return reply.code(202).send(acknowledgement(received));
        const { status, reason, error, explanation, retryAfter } = received;
        if (retryAfter !== null) reply.header("retry-after", String(retryAfter));
        if (!received.proven) return refuse(request, reply, { status, reason, error, explanation });
        note(reason, `of the partner: ${explanation}`, request.ip, status);
        return reply.code(status).send({ error });
      }
    }
  });

  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500)
      return refuse(request, reply, refused(status, "unreadable", "the request cannot be read"));
    log.error({ err: error }, "a webhook request failed");
    return reply.code(500).send({ error: "internal error" });
  });
  return app;
}

const WHAT_THIS_IS = "This is the webhook of setpointd. It takes deliveries of events: POST, JSON.\n";

const acknowledgement = ({ taken, hint }: Extract<Reception, { kind: "taken" }>) =>
  hint ? { ...taken, hint: true } : taken;

/** Finds a fault in the head of a request, so that its body need not be read. */
function headRefusal(scheme: Scheme, headers: HeaderFields, now: Instant): Refused | null {
  const type = headerText(headers, "content-type");
  if (type === null ? hasBody(headers) : !readsAsJson(type))
    return refused(415, "contentType", "JSON in UTF-8 only");
  if (!isPlain(headers)) return refused(415, "contentEncoding", "no content encoding");
  const fault = headerFault(scheme, headers, now) ?? tokenFault(scheme, headers, now);
  return fault === null ? null : refused(401, fault.reason, "unauthorized", fault.explanation);
}

/** A bearer token stands in the head. */
const tokenFault = (scheme: Scheme, headers: HeaderFields, now: Instant): AuthFault | null =>
  scheme.kind === "bearer" && !verify(scheme, headers, Buffer.alloc(0), now)
    ? signatureDiffers(scheme)
    : null;
