import { isIP } from "node:net";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import Fastify from "fastify";

import type { Json } from "../../domain/audit.ts";
import { limitConnections } from "../../platform/connectionLimit.ts";
import type { Health } from "../../platform/systemd.ts";

/**
 * Whether the Host of a request is ours. A page of somebody else can have its own name point at this machine (DNS
 * rebinding), and a browser then lets it read our answers: the Host still carries that name. An address is nobody's name.
 */
export function hostCheck(names: readonly string[]): (host: string | undefined) => boolean {
  const ours = new Set(["localhost", ...names.map((name) => name.toLowerCase())]);
  return (host) => {
    // HTTP/1.0: no browser sends that.
    if (host === undefined) return true;
    const [, six, other = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
    if (six !== undefined) return isIP(six) === 6;
    const name = other.toLowerCase().replace(/\.$/, "");
    return isIP(name) === 4 || ours.has(name) || name.endsWith(".localhost");
  };
}

/** What the listener shows; each is asked for anew at every request. */
export interface OperatorViews {
  /** True once the state is open, the listeners are up and the first look is done (DESIGN 6.3). */
  readonly ready: () => boolean;
  /** A daemon that is fit but works only in part answers 200 as well: a restart would not help. The words tell. */
  readonly health: () => Health;
  readonly status: () => Json;
  /** One after another: there may be thousands, each of thousands of vehicles. */
  readonly events: () => Iterable<Json>;
  readonly chargers: () => Json;
  readonly vehicles: () => Json;
  readonly audit: (query: AuditParameters) => Json;
  readonly prices: () => Json;
  readonly reports: () => Json;
  readonly metrics: { readonly contentType: string; readonly text: () => Promise<string> };
}

/** `after` is the seq of the last row seen; at most `limit` rows, `newest` first or oldest first. */
export interface AuditParameters {
  readonly event?: string;
  readonly charger?: string;
  readonly after?: number;
  readonly limit?: number;
  readonly newest?: boolean;
}

/** Browsers, Prometheus and probes need a handful; each costs a file descriptor. */
const CONNECTIONS = { unproven: 64, proven: 0, onDropped: () => {} };
const MOST_ROWS = 10_000;

/** Health and the read-only API for the people on site. It has no login: keep it on loopback or behind one. */
export class OperatorListener implements AsyncDisposable {
  readonly port: number;
  readonly #close: () => Promise<void>;

  private constructor(port: number, close: () => Promise<void>) {
    this.port = port;
    this.#close = close;
  }

  /** Rejects when the address cannot be listened on. The address is taken before the views exist: requests wait for them. */
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
        return unknown === null ? (await views)[view]() : reply.code(400).send({ error: unknown });
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
      return reply.send((await views).audit(parameters));
    });
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

const AUDIT_PARAMETERS = ["event", "charger", "after", "limit", "newest"];

/** A sentence about the first query parameter that is not known. Null: all are. */
function unknownParameter(query: unknown, known: readonly string[]): string | null {
  const unknown = Object.keys(query ?? {}).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  return `unknown query parameter ${unknown}; ${known.length === 0 ? "there is none here" : `there are ${known.join(", ")}`}`;
}

/** A JSON array, one element at a time: neither memory nor the loop is taken up by all of it. */
async function* jsonList(elements: Iterable<Json>): AsyncGenerator<string> {
  let before = "[";
  for (const element of elements) {
    yield before + JSON.stringify(element);
    before = ",";
    await setImmediate();
  }
  yield before === "[" ? "[]" : "]";
}

/** Query parameters as a query of the record; a text says what is wrong with them. */
export function auditParameters(query: Readonly<Record<string, unknown>>): AuditParameters | string {
  const unknown = unknownParameter(query, AUDIT_PARAMETERS);
  if (unknown !== null) return unknown;
  const [after, limit] = [wholeNumber(query["after"]), wholeNumber(query["limit"])];
  if (after === null || limit === null) return "after and limit are whole numbers, e.g. ?after=120&limit=50";
  return {
    ...(typeof query["event"] === "string" ? { event: query["event"].normalize("NFC").toWellFormed() } : {}),
    ...(typeof query["charger"] === "string" ? { charger: query["charger"] } : {}),
    ...(after === undefined ? {} : { after }),
    limit: Math.min(limit ?? 1000, MOST_ROWS),
    newest: query["newest"] === "true" || query["newest"] === "1",
  };
}

/** Undefined: absent. Null: not a whole number. */
function wholeNumber(text: unknown): number | null | undefined {
  if (text === undefined) return undefined;
  return typeof text === "string" && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
