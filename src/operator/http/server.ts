import { isIP } from "node:net";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import Fastify, { type FastifyReply } from "fastify";

import type { Json } from "../../domain/audit.ts";
import type { AuditQuery } from "../../domain/store.ts";
import { limitConnections } from "../../platform/connectionLimit.ts";
import type { Health } from "../../platform/systemd.ts";
import { type Answer, PROBLEM_TYPE } from "../answer.ts";

/**
 * Checks the Host of a request. A foreign page can point its own name at this machine (DNS rebinding), and a browser
 * then lets it read our answers. The Host still carries that name. An IP address cannot be pointed elsewhere.
 */
export function hostCheck(names: readonly string[]): (host: string | undefined) => boolean {
  const ours = new Set(["localhost", ...names.map((name) => name.toLowerCase())]);
  return (host) => {
    // HTTP/1.0 has no Host. No browser sends it.
    if (host === undefined) return true;
    const [, six, other = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
    if (six !== undefined) return isIP(six) === 6;
    const name = other.toLowerCase().replace(/\.$/, "");
    return isIP(name) === 4 || ours.has(name) || name.endsWith(".localhost");
  };
}

/** Views of the listener. Each is built anew for every request. */
export interface OperatorViews {
  /** True once the state is open, the listeners are up and the first evaluation is done. */
  readonly ready: () => boolean;
  /** A daemon that works only in part is fit and answers 200: a restart would not help. `words` has the reason. */
  readonly health: () => Health;
  readonly status: () => Json | Promise<Json>;
  /** Built one by one: there may be thousands, each with thousands of vehicles. */
  readonly events: () => Iterable<Json>;
  readonly chargers: () => Json;
  readonly vehicles: () => Json;
  readonly audit: (query: AuditQuery) => Json | Promise<Json>;
  readonly prices: () => Json;
  readonly reports: () => Json | Promise<Json>;
  /** The full stack of claims on a charger or a vehicle. */
  readonly explain: (query: Readonly<Record<string, unknown>>) => Answer<Json> | Promise<Answer<Json>>;
  readonly metrics: { readonly contentType: string; readonly text: () => Promise<string> };
}

/** Browsers, Prometheus and probes need a handful; each costs a file descriptor. */
const CONNECTIONS = { unproven: 64, proven: 0, onDropped: () => {} };
const MAX_ROWS = 10_000;

/** Health and the read-only API for the people on site. It has no login: keep it on loopback or behind one. */
export class OperatorListener implements AsyncDisposable {
  readonly port: number;
  readonly #close: () => Promise<void>;

  private constructor(port: number, close: () => Promise<void>) {
    this.port = port;
    this.#close = close;
  }

  /** Binds the address. Requests wait for the views. Rejects if the address cannot be bound. */
  static async start(
    at: { readonly host: string; readonly port: number; readonly hosts: readonly string[] },
    views: Promise<OperatorViews>,
  ): Promise<OperatorListener> {
    const app = Fastify({ forceCloseConnections: true });
    limitConnections(app.server, CONNECTIONS);
    const isOurs = hostCheck([at.host, ...at.hosts]);
    app.addHook("onRequest", async (request, reply) => {
      if (isOurs(request.headers.host)) return undefined;
      return reply
        .code(421)
        .send({ error: "the Host of this request is not a name of this gateway: operator.hosts" });
    });
    app.get("/healthz", async (_request, reply) => {
      const { fit, words } = (await views).health();
      return reply
        .code(fit ? 200 : 503)
        .type("text/plain")
        .send(`${words}\n`);
    });
    app.get("/readyz", async (_request, reply) => {
      const ready = (await views).ready();
      return reply
        .code(ready ? 200 : 503)
        .type("text/plain")
        .send(ready ? "ready\n" : "starting\n");
    });
    app.get("/metrics", async (_request, reply) => {
      const { metrics } = await views;
      return reply.type(metrics.contentType).send(await metrics.text());
    });
    for (const view of ["status", "chargers", "vehicles", "prices", "reports"] as const)
      app.get(`/api/v1/${view}`, async ({ query }, reply) => {
        const unknown = unknownParameter(query, []);
        return unknown === null ? await (await views)[view]() : reply.code(400).send({ error: unknown });
      });
    app.get("/api/v1/events", async ({ query }, reply) => {
      const unknown = unknownParameter(query, []);
      if (unknown !== null) return reply.code(400).send({ error: unknown });
      return reply
        .type("application/json; charset=utf-8")
        .send(Readable.from(jsonList((await views).events())));
    });
    app.get<{ Querystring: Record<string, unknown> }>("/api/v1/audit", async ({ query }, reply) => {
      const parameters = auditParameters(query);
      if (typeof parameters === "string") return reply.code(400).send({ error: parameters });
      return reply.send(await (await views).audit(parameters));
    });
    app.get<{ Querystring: Record<string, unknown> }>("/api/v1/explain", async ({ query }, reply) =>
      sendAnswer(reply, await (await views).explain(query)),
    );
    app.setNotFoundHandler(async (_request, reply) => reply.code(404).send({ error: "not found" }));
    await app.listen({ host: at.host, port: at.port });
    const bound = app.server.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : at.port;
    return new OperatorListener(port, async () => app.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** Sends the value as JSON, or the problem as problem+json. */
const sendAnswer = (reply: FastifyReply, answer: Answer<Json>, status = 200): FastifyReply =>
  answer.ok
    ? reply.code(status).send(answer.value)
    : reply.code(answer.problem.status).type(PROBLEM_TYPE).send(answer.problem);

const AUDIT_PARAMETERS = ["event", "charger", "after", "limit", "newest"];

/** Error text about the first unknown query parameter. Null: all are known. */
function unknownParameter(query: unknown, known: readonly string[]): string | null {
  const unknown = Object.keys(query ?? {}).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  return `unknown query parameter ${unknown}; ${known.length === 0 ? "there is none here" : `there are ${known.join(", ")}`}`;
}

/** Serializes a JSON array element by element. So it neither fills the memory nor blocks the event loop. */
async function* jsonList(elements: Iterable<Json>): AsyncGenerator<string> {
  let before = "[";
  for (const element of elements) {
    yield before + JSON.stringify(element);
    before = ",";
    await setImmediate();
  }
  yield before === "[" ? "[]" : "]";
}

/** Parses query parameters into a query of the record. A string is an error text. */
export function auditParameters(query: Readonly<Record<string, unknown>>): AuditQuery | string {
  const unknown = unknownParameter(query, AUDIT_PARAMETERS);
  if (unknown !== null) return unknown;
  const [after, limit] = [wholeNumber(query["after"]), wholeNumber(query["limit"])];
  if (after === null || limit === null) return "after and limit are whole numbers, e.g. ?after=120&limit=50";
  return {
    ...(typeof query["event"] === "string" ? { event: query["event"].normalize("NFC").toWellFormed() } : {}),
    ...(typeof query["charger"] === "string" ? { charger: query["charger"] } : {}),
    ...(after === undefined ? {} : { after }),
    limit: Math.min(limit ?? 1000, MAX_ROWS),
    newest: query["newest"] === "true" || query["newest"] === "1",
  };
}

/** Undefined: absent. Null: not a whole number. */
function wholeNumber(text: unknown): number | null | undefined {
  if (text === undefined) return undefined;
  return typeof text === "string" && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
