import type { Agent } from "undici";

import { type Instant, type Millis, minutes } from "../domain/units.ts";
import type { Monotonic } from "./budget.ts";
import { type Answered, type Ask, exchange, type Failed, failed } from "./http.ts";
import type { TokenSource } from "./token.ts";

/** The part of the token source that requests use. */
export type Tokens = Pick<TokenSource, "get" | "drop" | "renew">;

/** A fresh token was refused with 403 as well: for this long a 403 of the same endpoint asks for no further token. */
const FORBIDDEN_FOR = minutes(15);

/**
 * Whether a 403 of one endpoint may come from a dead token. Some VTNs answer 403 to one, and never 401. A 403 to a
 * token that was just issued is about our rights.
 */
export class ForbiddenEndpoint {
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

/** What a request to the partner's API needs beside its path and body. */
export interface Asking {
  readonly agent: Agent;
  readonly origin: string;
  readonly tokens: Tokens;
  readonly forbidden: ForbiddenEndpoint;
  /** For a whole request. */
  readonly deadline: Millis;
  readonly now: () => Instant;
  /** Asked before the one retry; false: this hour's requests are spent. */
  readonly mayAskAgain: () => boolean;
}

/**
 * A whole answer of any status, or why there is none. A 401 costs the token, and one retry with a fresh one (F34).
 * A 403 is retried once with a fresh token; the old one stays in use where no fresh one can be had.
 */
export const authorizedGet = (
  asking: Asking,
  path: string,
  expected: Buffer | null = null,
): Promise<Answered | Failed> => authorized(asking, { path, method: "GET", body: null, expected });

/** The same for a POST of JSON. */
export const authorizedPost = (asking: Asking, path: string, json: string): Promise<Answered | Failed> =>
  authorized(asking, { path, method: "POST", body: json, expected: null });

/** What is the same for both tries of a request. */
type Wish = Omit<Ask, "origin" | "headers">;

async function authorized(asking: Asking, wish: Wish): Promise<Answered | Failed> {
  const { tokens, mayAskAgain } = asking;
  const first = await tokens.get();
  if (first.kind === "failed") return withoutToken(first);
  const answer = await send(asking, wish, first.token);
  if (answer.kind === "failed") return answer;
  if (answer.status === 403) return retryForbidden(asking, wish, first.token, answer);
  if (answer.status !== 401) return answer;
  tokens.drop(first.token);
  if (!mayAskAgain()) return answer;
  const second = await tokens.get();
  // The refusal of the first token was an answer, whether or not another token could be asked for.
  if (second.kind === "failed") return { ...withoutToken(second), asked: true };
  return send(asking, wish, second.token);
}

async function retryForbidden(
  asking: Asking,
  wish: Wish,
  token: string,
  refusal: Answered,
): Promise<Answered | Failed> {
  const { tokens, forbidden, mayAskAgain } = asking;
  if (forbidden.isKnown || !mayAskAgain()) return refusal;
  const fresh = await tokens.renew(token);
  if (fresh.kind === "failed") return refusal;
  const answer = await send(asking, wish, fresh.token);
  if (answer.kind === "answered" && answer.status === 403) forbidden.record();
  return answer;
}

async function send(asking: Asking, wish: Wish, token: string): Promise<Answered | Failed> {
  const { agent, origin, deadline, now } = asking;
  const headers = {
    accept: "application/json",
    "accept-encoding": "identity",
    authorization: `Bearer ${token}`,
    ...(wish.body === null ? {} : { "content-type": "application/json" }),
  };
  const answer = await exchange(agent, { ...wish, origin, headers }, deadline, now);
  return answer.kind === "silent" ? failed(answer.reason, null, null) : answer;
}

const withoutToken = (why: Failed): Failed => ({ ...why, reason: `no access token: ${why.reason}` });
