import type { Agent } from "undici";

import type { Failed } from "../domain/delivery.ts";
import { type Instant, type Millis, millis, minutes } from "../domain/units.ts";
import type { Dialect } from "./dialects/dialect.ts";
import {
  agentFor,
  type Monotonic,
  type Answered,
  type HttpRequest,
  exchange,
  failed,
  unasked,
} from "./http.ts";
import type { TokenSource } from "./token.ts";

/** The part of the token source that requests use. */
type Tokens = Pick<TokenSource, "get" | "drop" | "renew">;

/** Pause, ms: an endpoint that refused a fresh token with 403 costs no further token until then. */
const FORBIDDEN_FOR = minutes(15);

/**
 * Remembers an endpoint that refused a fresh token with 403: that refusal is about our rights. Some VTNs
 * answer an expired token with 403, never with 401, so a first 403 is worth one new token.
 */
class ForbiddenEndpoint {
  readonly #monotonic: Monotonic;
  #until = Number.NEGATIVE_INFINITY;

  constructor(monotonic: Monotonic) {
    this.#monotonic = monotonic;
  }

  get isKnown(): boolean {
    return this.#monotonic() < this.#until;
  }

  /** A fresh token was refused too. */
  record(): void {
    this.#until = this.#monotonic() + FORBIDDEN_FOR;
  }
}

/** Everything that a request to the partner's API needs, apart from its path and body. */
export interface RequestContext {
  readonly agent: Agent;
  readonly origin: string;
  readonly tokens: Tokens;
  readonly forbidden: ForbiddenEndpoint;
  /** For a whole request. */
  readonly deadline: Millis;
  readonly now: () => Instant;
  /** Called before the one retry. False: this hour's requests are spent. */
  readonly mayAskAgain: () => boolean;
}

/** Access to the partner's API, as each client of it needs it. */
export interface ApiAccess {
  /** Start of every address, e.g. `https://api.partner.example`. */
  readonly baseUrl: string;
  readonly dialect: Dialect;
  readonly tokens: Tokens;
  /** For a whole request. Absent: the default of the client. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
}

/** Requests of one client of the partner's API. Its answers have at most `maxBytes`. The client destroys the agent. */
export function requestsTo(
  { baseUrl, tokens, now, monotonic, deadline: asked }: ApiAccess,
  { maxBytes, deadline }: { readonly maxBytes: number; readonly deadline: Millis },
  mayAskAgain: () => boolean,
): RequestContext & {
  /** Start of every path, without a slash at its end. */
  readonly base: string;
} {
  const { origin, pathname } = new URL(baseUrl);
  const within = asked ?? deadline;
  return {
    agent: agentFor(maxBytes, within),
    origin,
    base: pathname.replace(/\/+$/, ""),
    tokens,
    forbidden: new ForbiddenEndpoint(monotonic),
    deadline: within,
    now,
    mayAskAgain,
  };
}

/**
 * A whole answer of any status, or the reason why there is none. After a 401 the token is dropped and the
 * request is retried once with a new one. After a 403 it is retried once with a fresh token; the old token
 * stays in use if none can be had.
 */
export const authorizedGet = (
  context: RequestContext,
  path: string,
  expected: Buffer | null = null,
): Promise<Answered | Failed> => authorized(context, { path, method: "GET", body: null, expected });

/** `authorizedGet` for a POST of JSON. */
export const authorizedPost = (
  context: RequestContext,
  path: string,
  json: string,
): Promise<Answered | Failed> => authorized(context, { path, method: "POST", body: json, expected: null });

/** The part that both tries of a request share. */
type AuthorizedRequest = Omit<HttpRequest, "origin" | "headers">;

async function authorized(context: RequestContext, request: AuthorizedRequest): Promise<Answered | Failed> {
  const { tokens, mayAskAgain } = context;
  const first = await tokens.get();
  if (first.kind === "failed") return withoutToken(first);
  const answer = await send(context, request, first.token);
  if (answer.kind === "failed") return answer;
  if (answer.status === 403) return retryForbidden(context, request, first.token, answer);
  if (answer.status !== 401) return answer;
  tokens.drop(first.token);
  if (!mayAskAgain()) return answer;
  const second = await tokens.get();
  // The first token was refused by an answer, so the partner was asked even if the second token fails.
  if (second.kind === "failed") return { ...withoutToken(second), asked: true };
  return send(context, request, second.token);
}

async function retryForbidden(
  context: RequestContext,
  request: AuthorizedRequest,
  token: string,
  refusal: Answered,
): Promise<Answered | Failed> {
  const { tokens, forbidden, mayAskAgain } = context;
  if (forbidden.isKnown || !mayAskAgain()) return refusal;
  const fresh = await tokens.renew(token);
  if (fresh.kind === "failed") return refusal;
  const answer = await send(context, request, fresh.token);
  if (answer.kind === "answered" && answer.status === 403) forbidden.record();
  return answer;
}

async function send(
  context: RequestContext,
  request: AuthorizedRequest,
  token: string,
): Promise<Answered | Failed> {
  const { agent, origin, deadline, now } = context;
  const headers = {
    accept: "application/json",
    "accept-encoding": "identity",
    authorization: `Bearer ${token}`,
    ...(request.body === null ? {} : { "content-type": "application/json" }),
  };
  const answer = await exchange(agent, { ...request, origin, headers }, deadline, now);
  return answer.kind === "silent" ? failed(answer.reason, null, null) : answer;
}

const withoutToken = (why: Failed): Failed => ({ ...why, reason: `no access token: ${why.reason}` });

/** The time in which the partner asked for no requests (Retry-After). Monotonic clock, ms. */
export class QuietTime {
  readonly #monotonic: Monotonic;
  #until = Number.NEGATIVE_INFINITY;
  #reason = "";

  constructor(monotonic: Monotonic) {
    this.#monotonic = monotonic;
  }

  begin({ reason, retryAfter }: Failed): void {
    this.#until = this.#monotonic() + (retryAfter ?? 0);
    this.#reason = reason;
  }

  /** Null: a request may be sent. The reason stays that of the answer: a new wording would be logged as a new problem. */
  get refusal(): Failed | null {
    const wait = this.#until - this.#monotonic();
    return wait > 0 ? unasked(this.#reason, millis(wait)) : null;
  }
}
