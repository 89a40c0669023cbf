import Fastify from "fastify";

import type { Json } from "../core/audit.ts";

/** What the listener shows; each is asked for anew at every request. */
export interface OperatorViews {
  /** The address is taken before there is anything to show: requests wait for that. */
  readonly up: Promise<void>;
  /** True once the state is open, the listeners are up and the first look is done (DESIGN 6.3). */
  readonly ready: () => boolean;
  readonly status: () => Json;
  readonly events: () => Json;
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

const MOST_ROWS = 10_000;

/** Health and the read-only API for the people on site. It has no login: keep it on loopback or behind one. */
export class OperatorListener implements AsyncDisposable {
  readonly port: number;
  readonly #close: () => Promise<void>;

  private constructor(port: number, close: () => Promise<void>) {
    this.port = port;
    this.#close = close;
  }

  /** Rejects when the address cannot be listened on. */
  static async start(
    at: { readonly host: string; readonly port: number },
    views: OperatorViews,
  ): Promise<OperatorListener> {
    const app = Fastify({ forceCloseConnections: true });
    app.addHook("onRequest", () => views.up);
    app.get("/healthz", async (_request, reply) => reply.type("text/plain").send("ok\n"));
    app.get("/readyz", async (_request, reply) => {
      const ready = views.ready();
      return reply
        .code(ready ? 200 : 503)
        .type("text/plain")
        .send(ready ? "ready\n" : "starting\n");
    });
    app.get("/metrics", async (_request, reply) =>
      reply.type(views.metrics.contentType).send(await views.metrics.text()),
    );
    app.get("/api/v1/status", async () => views.status());
    app.get("/api/v1/events", async () => views.events());
    app.get("/api/v1/chargers", async () => views.chargers());
    app.get("/api/v1/vehicles", async () => views.vehicles());
    app.get("/api/v1/prices", async () => views.prices());
    app.get("/api/v1/reports", async () => views.reports());
    app.get<{ Querystring: Record<string, unknown> }>("/api/v1/audit", async ({ query }, reply) => {
      const parameters = auditParameters(query);
      if (typeof parameters === "string") return reply.code(400).send({ error: parameters });
      return reply.send(views.audit(parameters));
    });
    app.setNotFoundHandler(async (_request, reply) => reply.code(404).send({ error: "not found" }));
    await app.listen(at);
    const bound = app.server.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : at.port;
    return new OperatorListener(port, async () => app.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** Query parameters as a query of the record; a text says what is wrong with them. */
export function auditParameters(query: Readonly<Record<string, unknown>>): AuditParameters | string {
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
