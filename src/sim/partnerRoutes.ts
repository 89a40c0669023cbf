import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Instant } from "../core/units.ts";
import type { WireEvent } from "./events.ts";
import type { Endpoint, PartnerFaults } from "./partnerFaults.ts";
import { spotPrices } from "./prices.ts";
import type { Tokens } from "./tokens.ts";

/** What the routes answer from. */
export interface PartnerDesk {
  readonly tokens: Tokens;
  readonly events: ReadonlyMap<string, WireEvent>;
  readonly faults: PartnerFaults;
  /** A bare array is the contract; `{"events":[...]}` came later (openadr3.md 0). */
  readonly envelope: "array" | "events";
  readonly now: () => Instant;
}

type Answer = (request: FastifyRequest, reply: FastifyReply) => unknown;

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

  server.get<{ Params: { region: string } }>("/smart/v1/prices/actual/:region", (request, reply) =>
    authorized("prices", () => reply.send(spotPrices(request.params.region, now())))(request, reply),
  );
}
