import { z } from "zod";
import { type Millis, millis, minutes, seconds } from "../core/units.ts";
import type { Answer, Answered } from "./exchange.ts";
import { type Failed, failed } from "./failed.ts";
import { retryAfterOf } from "./headers.ts";

/** A token, or why there is none. */
export type TokenOutcome = { readonly kind: "token"; readonly token: string } | Failed;

/** partner-interface 5: valid for one hour. */
const ASSUMED_LIFE = minutes(60);
const LONGEST_LIFE = minutes(24 * 60);
const SHORTEST_LIFE = seconds(60);

/** partner-interface 5.3 promises `access_token` only. The pattern keeps line breaks out of our headers (F36). */
const tokenBody = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.unknown().optional(),
});

const refusalBody = z.object({ error: z.string() });

/** Obeyed between 60 s and 24 h; under that it is 60 s, and anything that is no sensible life is one hour. */
export function tokenLife(expiresIn: unknown): Millis {
  const life = typeof expiresIn === "number" ? expiresIn * 1000 : Number.NaN;
  return life > 0 && life <= LONGEST_LIFE ? millis(Math.max(life, SHORTEST_LIFE)) : ASSUMED_LIFE;
}

/** A token that was just issued, and how long it lives. */
interface Issued {
  readonly kind: "token";
  readonly token: string;
  readonly life: Millis;
}

const CREDENTIALS = "vtn.clientId and vtn.clientSecret";

/** What RFC 6749 (5.2) has a token server say, and where what it dislikes stands in our configuration. */
const OAUTH_ERRORS: ReadonlyMap<unknown, string> = new Map([
  ["invalid_client", CREDENTIALS],
  ["invalid_grant", CREDENTIALS],
  ["unauthorized_client", CREDENTIALS],
  ["invalid_scope", "vtn.scope"],
  ["invalid_request", "vtn.tokenUrl"],
  ["unsupported_grant_type", "vtn.tokenUrl"],
]);

/**
 * What the token server at `url` answered: a token and how long it lives, or why there is none (partner-interface 5).
 * Of a refusal only a code that everyone knows is told: the rest of it may repeat our secret.
 */
export function readToken(answer: Answer, url: string): Issued | Failed {
  if (answer.kind === "silent") return failed(answer.reason, null, null);
  const { status, headers, at } = answer;
  if (status !== 200) return failed(refusal(answer, url), status, retryAfterOf(headers, at));
  const parsed = tokenBody.safeParse(jsonOrNull(answer.body));
  if (!parsed.success) return failed("the token server's answer holds no usable access_token", status, null);
  return { kind: "token", token: parsed.data.access_token, life: tokenLife(parsed.data.expires_in) };
}

function refusal(answer: Answered, url: string): string {
  const { status } = answer;
  if (status === 429 || status < 300 || status >= 500) return `the token server answered ${status}`;
  const said = refusalBody.safeParse(jsonOrNull(answer.body)).data?.error;
  const known = OAUTH_ERRORS.get(said);
  if (known !== undefined) return `${url} answered ${status} (${said}): check ${known}`;
  return `${url} answered ${status}: check ${[400, 401, 403].includes(status) ? CREDENTIALS : "vtn.tokenUrl"}`;
}

const jsonOrNull = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
};
