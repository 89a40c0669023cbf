import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Instant } from "../core/units.ts";
import type { WireEvent } from "./events.ts";
import type { Endpoint, PartnerFaults } from "./partnerFaults.ts";
import { priceForecast, spotPrices } from "./prices.ts";
import { reportAnswer, type ReportTray } from "./reports.ts";
import type { Tokens } from "./tokens.ts";

/** What the routes answer from. */
export interface PartnerDesk {
  readonly tokens: Tokens;
  readonly events: ReadonlyMap<string, WireEvent>;
  readonly reports: ReportTray;
  readonly faults: PartnerFaults;
  /** A bare array is the contract; `{"events":[...]}` came later (openadr3.md 0). */
  readonly envelope: "array" | "events";
  readonly now: () => Instant;
}

/** Ten thousand vehicles in 15-minute steps, say. */
const MAX_REPORT = 32 * 1024 * 1024;

type Answer = (request: FastifyRequest, reply: FastifyReply) => unknown;

const found = (prices: object | null, reply: FastifyReply): FastifyReply =>
  prices === null ? reply.code(404).send({ error: "unknown region" }) : reply.send(prices);

/** partner-interface 4, on one server: identity, both path families, spot prices. */
export function partnerRoutes(server: FastifyInstance, desk: PartnerDesk): void {
  const { tokens, events, faults, now } = desk;

  const endpoint =
    (name: Endpoint, answer: Answer): Answer =>
    async (request, reply) => {
      const failure = faults.meet(name);
      await sleep(faults.latency);
      // Node would stamp its own clock; a partner with a wrong clock must show it.
      reply.header("date", new Date(now()).toUTCString());
      if (failure !== null) return reply.code(failure).send({ error: "planned failure" });
      return answer(request, reply);
    };

  const authorized = (name: Endpoint, answer: Answer): Answer =>
    endpoint(name, (request, reply) =>
      tokens.admits(request.headers.authorization, now())
        ? answer(request, reply)
        : reply.code(401).header("www-authenticate", "Bearer").send(),
    );

  server.addContentTypeParser(
    "application/x-www-form-urlencoded",
    { parseAs: "string" },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );

  server.post(
    "/connect/token",
    endpoint("token", ({ body }, reply) => {
      if (!(body instanceof URLSearchParams)) return reply.code(400).send({ error: "invalid_request" });
      const granted = tokens.grant(body, now());
      return reply.code(granted.status).send(granted.body);
    }),
  );

  for (const family of ["energy-coordination", "vtn"]) {
    server.get(
      `/${family}/v1/events`,
      authorized("list", (_request, reply) => {
        const list = [...events.values()];
        return reply.send(desk.envelope === "array" ? list : { events: list });
      }),
    );
    server.get<{ Params: { id: string } }>(`/${family}/v1/events/:id`, (request, reply) =>
      authorized("event", () => {
        const event = events.get(request.params.id);
        return event ? reply.send(event) : reply.code(404).send({ error: "unknown event" });
      })(request, reply),
    );
  }

  for (const family of ["energy-coordination", "vtn"]) {
    const path = `/${family}/v1/reports`;
    server.post(
      path,
      { bodyLimit: MAX_REPORT },
      authorized("report", ({ body }, reply) => {
        const taken = desk.reports.take(body, now());
        return typeof taken === "string"
          ? reply.code(400).send({ error: taken })
          : reply.code(201).send(reportAnswer(taken));
      }),
    );
    server.get(
      path,
      authorized("report", (_request, reply) => reply.send(desk.reports.taken.map(reportAnswer))),
    );
  }

  server.get<{ Params: { region: string } }>("/smart/v1/prices/actual/:region", (request, reply) =>
    authorized("prices", () => found(spotPrices(request.params.region, now()), reply))(request, reply),
  );
  server.get<{ Params: { region: string }; Querystring: { segmentSize?: string } }>(
    "/smart/v1/prices/forecast/:region",
    (request, reply) =>
      authorized("prices", () => {
        const { params, query } = request;
        const hours = /^[1-9]\d?$/.test(query.segmentSize ?? "") ? Number(query.segmentSize) : 1;
        return found(priceForecast(params.region, now(), hours), reply);
      })(request, reply),
  );
}
