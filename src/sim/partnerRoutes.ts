import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

import { between, type Instant, type Millis, millis } from "../domain/units.ts";
import { type WireEvent, priceForecast, spotPrices } from "./events.ts";
import { reportAnswer, type ReportTray } from "./reports.ts";

/** The registered client, and the lifetime of its tokens. */
export interface Registration {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly lifetime: Millis;
}

/** Answer of the token endpoint. Errors as in RFC 6749 5.2. */
export type TokenAnswer =
  | { readonly status: 200; readonly body: { readonly access_token: string; readonly expires_in: number } }
  | { readonly status: 400; readonly body: { readonly error: string; readonly error_description: string } };

const refused = (error: string, error_description: string): TokenAnswer => ({
  status: 400,
  body: { error, error_description },
});

const FIELDS = ["grant_type", "scope", "client_id", "client_secret"] as const;

/** Identity server (partner-interface 5): issues and checks tokens. */
export class Tokens {
  readonly #registration: Registration;
  readonly #issued = new Map<string, Instant>();
  #count = 0;

  constructor(registration: Registration) {
    this.#registration = registration;
  }

  /** Requires each of the four fields once and no other field (partner-interface 5, step 2). */
  grant(form: URLSearchParams, now: Instant): TokenAnswer {
    for (const field of FIELDS)
      if (form.getAll(field).length !== 1) return refused("invalid_request", `${field} once`);
    const unknown = [...form.keys()].find((name) => !FIELDS.some((field) => field === name));
    if (unknown !== undefined) return refused("invalid_request", `unknown field ${unknown}`);
    if (form.get("grant_type") !== "client_credentials")
      return refused("unsupported_grant_type", "client_credentials only");
    if (form.get("scope") === "") return refused("invalid_scope", "scope is empty");
    const { clientId, clientSecret, lifetime } = this.#registration;
    if (form.get("client_id") !== clientId || form.get("client_secret") !== clientSecret)
      return refused("invalid_client", "unknown client or wrong secret");
    this.#count += 1;
    const token = createHmac("sha256", clientSecret).update(`${now} ${this.#count}`).digest("base64url");
    this.#issued.set(token, now);
    return { status: 200, body: { access_token: token, expires_in: Math.floor(lifetime / 1000) } };
  }

  /** True for an `Authorization` header with a valid token. */
  admits(authorization: string | undefined, now: Instant): boolean {
    const token = /^Bearer ([\w-]+)$/.exec(authorization ?? "")?.[1];
    const issued = token === undefined ? undefined : this.#issued.get(token);
    return issued !== undefined && between(issued, now) < this.#registration.lifetime;
  }

  revoke(): void {
    this.#issued.clear();
  }
}

/** HTTP endpoint of the partner. */
export type Endpoint = "token" | "list" | "event" | "prices" | "report";

interface Failure {
  readonly status: number;
  readonly endpoint: Endpoint | null;
  left: number;
}

/** Planned failures, latency and request counters of a simulated partner. */
export class PartnerFaults {
  /** Delay of every answer. */
  latency = millis(0);
  readonly requests: Record<Endpoint, number> = { token: 0, list: 0, event: 0, prices: 0, report: 0 };
  readonly #failures: Failure[] = [];

  /** Answers the next `times` requests with `status`. Null endpoint: any. */
  failNext(status: number, times = 1, endpoint: Endpoint | null = null): void {
    this.#failures.push({ status, endpoint, left: times });
  }

  /** Cancels all planned failures. */
  forgive(): void {
    this.#failures.length = 0;
  }

  /** Counts a request. Returns the status to fail with; null: none. */
  countRequest(endpoint: Endpoint): number | null {
    this.requests[endpoint] += 1;
    const failure = this.#failures.find(
      (planned) => planned.left > 0 && (planned.endpoint === null || planned.endpoint === endpoint),
    );
    if (!failure) return null;
    failure.left -= 1;
    return failure.status;
  }
}

/** State that the routes read and change. */
export interface PartnerState {
  readonly tokens: Tokens;
  readonly events: ReadonlyMap<string, WireEvent>;
  readonly reports: ReportTray;
  readonly faults: PartnerFaults;
  /** The contract is a bare array. `{"events":[...]}` is a later form (openadr3.md 0). */
  readonly envelope: "array" | "events";
  readonly now: () => Instant;
}

/** Bytes. Enough for ten thousand vehicles in 15-minute steps. */
const MAX_REPORT = 32 * 1024 * 1024;

type Answer = (request: FastifyRequest, reply: FastifyReply) => unknown;

const found = (prices: object | null, reply: FastifyReply): FastifyReply =>
  prices === null ? reply.code(404).send({ error: "unknown region" }) : reply.send(prices);

/** Routes of partner-interface 4 on one server: identity, both path families, spot prices. */
export function partnerRoutes(server: FastifyInstance, state: PartnerState): void {
  const { tokens, events, faults, now } = state;

  const endpoint =
    (name: Endpoint, answer: Answer): Answer =>
    async (request, reply) => {
      const failure = faults.countRequest(name);
      await sleep(faults.latency);
      // Node would send its own clock; tests need the wrong clock of the partner here.
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
        return reply.send(state.envelope === "array" ? list : { events: list });
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
        const stored = state.reports.accept(body, now());
        return typeof stored === "string"
          ? reply.code(400).send({ error: stored })
          : reply.code(201).send(reportAnswer(stored));
      }),
    );
    server.get(
      path,
      authorized("report", (_request, reply) => reply.send(state.reports.accepted.map(reportAnswer))),
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
