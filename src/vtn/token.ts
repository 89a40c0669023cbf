import type { Logger } from "pino";
import type { Agent } from "undici";
import { z } from "zod";

import type { Failed } from "../domain/delivery.ts";
import { after, type Millis, millis, seconds, type Instant, hours } from "../domain/units.ts";
import { backoff } from "../platform/clock.ts";
import {
  type Monotonic,
  hourlyBudget,
  type HourlyBudget,
  type Answer,
  type Answered,
  failed,
  retryAfterOf,
  type HttpRequest,
  agentFor,
  exchange,
  unasked,
} from "./http.ts";

/** A token, or the reason why there is none. */
export type TokenOutcome = { readonly kind: "token"; readonly token: string } | Failed;

/** The partner documents a life of one hour. */
const ASSUMED_LIFE = hours(1);
const LONGEST_LIFE = hours(24);
/** Without a pause between requests a life of milliseconds would take our whole limit at once. */
const SHORTEST_LIFE = seconds(1);

/** The partner promises `access_token` only. The pattern keeps line breaks out of our headers. */
const tokenBody = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.unknown().optional(),
});

const refusalBody = z.object({ error: z.string() });

/** Up to 24 h the value is used, also as digits in a string. Anything else counts as one hour. */
export function tokenLife(expiresIn: unknown): Millis {
  const isDigits = typeof expiresIn === "string" && /^[0-9]{1,9}$/.test(expiresIn);
  const life = typeof expiresIn === "number" || isDigits ? Number(expiresIn) * 1000 : Number.NaN;
  return life > 0 && life <= LONGEST_LIFE ? millis(Math.max(life, SHORTEST_LIFE)) : ASSUMED_LIFE;
}

/** A newly issued token and its life. */
interface Issued {
  readonly kind: "token";
  readonly token: string;
  readonly life: Millis;
}

const CREDENTIALS = "vtn.clientId and vtn.clientSecret";

/** Error codes of RFC 6749 (5.2), and the configuration keys to check for each. */
const OAUTH_ERRORS: ReadonlyMap<unknown, string> = new Map([
  ["invalid_client", CREDENTIALS],
  ["invalid_grant", CREDENTIALS],
  ["unauthorized_client", CREDENTIALS],
  ["invalid_scope", "vtn.scope"],
  ["invalid_request", "vtn.tokenUrl"],
  ["unsupported_grant_type", "vtn.tokenUrl"],
]);

/**
 * Reads the answer of the token server at `url`. Of a refusal only a known error code is reported: the rest
 * may repeat our secret.
 */
function readToken(answer: Answer, url: string): Issued | Failed {
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

export interface TokenOptions {
  /** The whole address, e.g. `https://id.partner.example/connect/token`. */
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Called for each request, so that a rotated secret is used at once. */
  readonly clientSecret: () => string;
  /** Null: the field is left out. */
  readonly scope: string | null;
  /** Deadline of a whole token request; default 10 s. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** A fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
}

interface CurrentToken {
  readonly token: string;
  readonly askedAt: number;
  readonly renewAt: number;
  readonly until: number;
  /** The end by the clock of the site, for people. */
  readonly expiresAt: Instant;
}

const MAX_BYTES = 64 * 1024;
const FIRST_RETRY = seconds(1);
const PATIENCE = seconds(60);
const REQUESTS_PER_HOUR = 60;
/** A short life is obeyed for this many requests in an hour. Then it is raised, so that the other half lasts for the hour. */
const HASTY_REQUESTS = REQUESTS_PER_HOUR / 2;
const SPARING_LIFE = seconds(150);

/**
 * The access token. At most one request is in flight. The token is renewed at 80 % of its life, and used to
 * its end while the token server fails.
 */
export class TokenSource implements AsyncDisposable {
  readonly #options: TokenOptions;
  readonly #deadline: Millis;
  readonly #agent: Agent;
  readonly #allowed: HourlyBudget;
  #current: CurrentToken | null = null;
  #renewing: Promise<TokenOutcome> | null = null;
  #failures = 0;
  #lastAsked = Number.NEGATIVE_INFINITY;
  #lastDropped = Number.NEGATIVE_INFINITY;
  /** Monotonic: no request before it. */
  #closedUntil = Number.NEGATIVE_INFINITY;
  /** Reason returned while requests are blocked. Reuse the first reason: a new wording would be logged as a new problem. */
  #closedBecause = "waiting before the next token request";
  /** Monotonic: until then requests are blocked by a Retry-After or a refusal, not by our own back-off. */
  #refusedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#deadline = options.deadline ?? seconds(10);
    this.#agent = agentFor(MAX_BYTES, this.#deadline);
    this.#allowed = hourlyBudget(REQUESTS_PER_HOUR, options.monotonic, () =>
      options.log.warn({ limit: REQUESTS_PER_HOUR }, "our own limit of token requests in an hour is spent"),
    );
  }

  /** A token for use now. Never rejects. */
  async get(): Promise<TokenOutcome> {
    const now = this.#options.monotonic();
    if (this.#current === null || this.#current.until <= now) return this.#renewing ?? this.#renew();
    const { renewAt, askedAt } = this.#current;
    const mayRenew = renewAt <= now && this.#lastAsked + Math.min(PATIENCE, renewAt - askedAt) <= now;
    if (mayRenew && this.#renewing === null) void this.#renew();
    return { kind: "token", token: this.#current.token };
  }

  /** A token other than this one. This one stays in use until a new one is issued. Never rejects. */
  async renew(token: string): Promise<TokenOutcome> {
    return this.#current?.token === token ? (this.#renewing ?? this.#renew()) : this.get();
  }

  /** Ends the back-off after an outage. A Retry-After or a refusal of our credentials still applies. */
  endBackoff(): void {
    this.#closedUntil = Math.min(this.#closedUntil, this.#refusedUntil);
  }

  /** Time since the token in use was requested. Null: no token. */
  age(): Millis | null {
    return this.#current === null ? null : millis(this.#options.monotonic() - this.#current.askedAt);
  }

  /** End of the token in use. Null: no token. */
  expiresAt(): Instant | null {
    return this.#current?.expiresAt ?? null;
  }

  /** The partner refused this token. After a second refusal within a minute we wait, as a new token does not help. */
  drop(token: string): void {
    if (this.#current?.token !== token) return;
    this.#current = null;
    const now = this.#options.monotonic();
    const opens = this.#lastDropped + PATIENCE;
    if (now < opens) {
      this.#closedUntil = Math.max(this.#closedUntil, opens);
      this.#refusedUntil = this.#closedUntil;
      this.#closedBecause = "the partner refused two tokens within a minute";
    }
    this.#lastDropped = now;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  async #renew(): Promise<TokenOutcome> {
    const now = this.#options.monotonic();
    const wait = this.#closedUntil - now;
    if (wait > 0) return unasked(this.#closedBecause, millis(wait));
    if (!this.#allowed()) return unasked(`${REQUESTS_PER_HOUR} token requests in an hour`, PATIENCE);
    this.#lastAsked = now;
    this.#renewing = this.#request().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #request(): Promise<TokenOutcome> {
    const { log, monotonic, now } = this.#options;
    // Life counts from before the request: the server may have issued the token any time after it.
    const [asked, askedAt] = [monotonic(), now()];
    const { origin, pathname } = new URL(this.#options.tokenUrl);
    const outcome = readToken(await this.#post(), `${origin}${pathname}`);
    if (outcome.kind === "failed") {
      const wait = this.#refused(outcome);
      // The caller logs the failure once; this is the detail of each try.
      log.debug({ reason: outcome.reason, status: outcome.status, nextTryMs: wait }, "no access token");
      return { ...outcome, retryAfter: wait };
    }
    const isSparing = this.#allowed.taken() > HASTY_REQUESTS;
    const life = isSparing ? millis(Math.max(outcome.life, SPARING_LIFE)) : outcome.life;
    this.#current = {
      token: outcome.token,
      askedAt: asked,
      renewAt: asked + life * 0.8,
      until: asked + life,
      expiresAt: after(askedAt, life),
    };
    this.#failures = 0;
    log.info({ lifeSeconds: life / 1000 }, "access token received");
    return { kind: "token", token: outcome.token };
  }

  /** Back-off of up to 1 s at first, then up to 60 s. At least a minute after a refusal of our credentials. */
  #refused(outcome: Failed): Millis {
    const pause = backoff(this.#failures, this.#options.random(), FIRST_RETRY, PATIENCE);
    this.#failures += 1;
    const ours = [400, 401, 403].includes(outcome.status ?? 0);
    const refused = Math.max(ours ? PATIENCE : 0, outcome.retryAfter ?? 0);
    const wait = Math.max(pause, refused);
    const now = this.#options.monotonic();
    this.#closedUntil = now + wait;
    this.#refusedUntil = now + refused;
    this.#closedBecause = outcome.reason;
    return millis(wait);
  }

  async #post(): Promise<Answer> {
    const { tokenUrl, clientId, scope, now } = this.#options;
    const secret = readable(this.#options.clientSecret);
    if (secret === null) return { kind: "silent", reason: "the client secret cannot be read" };
    const { origin, pathname, search } = new URL(tokenUrl);
    const form = new URLSearchParams({ grant_type: "client_credentials" });
    if (scope !== null) form.set("scope", scope);
    form.set("client_id", clientId);
    form.set("client_secret", secret);
    const headers = {
      accept: "application/json",
      "accept-encoding": "identity",
      "content-type": "application/x-www-form-urlencoded",
    };
    const request: HttpRequest = {
      origin,
      path: pathname + search,
      method: "POST",
      headers,
      body: form.toString(),
      expected: null,
    };
    return exchange(this.#agent, request, this.#deadline, now);
  }
}

/** The file of a secret may be missing for a moment during rotation. */
const readable = (secret: () => string): string | null => {
  try {
    return secret();
  } catch {
    return null;
  }
};
