import type { Agent } from "undici";
import type { Instant, Millis } from "../core/units.ts";
import { type Answered, exchange } from "./exchange.ts";
import { type Failed, failed } from "./failed.ts";
import type { TokenSource } from "./token.ts";

/** What a request to the partner's API needs beside its path and body. */
export interface Asking {
  readonly agent: Agent;
  readonly origin: string;
  readonly tokens: Pick<TokenSource, "get" | "drop">;
  /** For a whole request. */
  readonly deadline: Millis;
  readonly now: () => Instant;
  /** Asked before the one retry; false: this hour's requests are spent. */
  readonly mayAskAgain: () => boolean;
}

/** A whole answer of any status, or why there is none. A 401 costs the token, and one retry with a fresh one (F34). */
export const authorizedGet = (asking: Asking, path: string): Promise<Answered | Failed> =>
  authorized(asking, path, null);

/** The same for a POST of JSON. */
export const authorizedPost = (asking: Asking, path: string, json: string): Promise<Answered | Failed> =>
  authorized(asking, path, json);

async function authorized(asking: Asking, path: string, json: string | null): Promise<Answered | Failed> {
  const { tokens, mayAskAgain } = asking;
  const first = await tokens.get();
  if (first.kind === "failed") return withoutToken(first);
  const answer = await send(asking, path, json, first.token);
  if (answer.kind === "failed" || answer.status !== 401) return answer;
  tokens.drop(first.token);
  if (!mayAskAgain()) return answer;
  const second = await tokens.get();
  // The refusal of the first token was an answer, whether or not another token could be asked for.
  if (second.kind === "failed") return { ...withoutToken(second), asked: true };
  return send(asking, path, json, second.token);
}

async function send(
  asking: Asking,
  path: string,
  json: string | null,
  token: string,
): Promise<Answered | Failed> {
  const { agent, origin, deadline, now } = asking;
  const headers = {
    accept: "application/json",
    "accept-encoding": "identity",
    authorization: `Bearer ${token}`,
    ...(json === null ? {} : { "content-type": "application/json" }),
  };
  const method = json === null ? "GET" : "POST";
  const answer = await exchange(agent, { origin, path, method, headers, body: json }, deadline, now);
  return answer.kind === "silent" ? failed(answer.reason, null, null) : answer;
}

const withoutToken = (why: Failed): Failed => ({ ...why, reason: `no access token: ${why.reason}` });
