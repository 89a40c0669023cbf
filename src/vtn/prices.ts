import type { Agent } from "undici";

import type { PriceKind, PriceQuery, PricesAsked } from "../domain/prices.ts";
import { type Instant, type Millis, millis, seconds } from "../domain/units.ts";
import { authorizedGet, ForbiddenEndpoint, type Tokens } from "./authorized.ts";
import { hourlyBudget, type Monotonic } from "./budget.ts";
import { failureOf } from "./client.ts";
import { readPrices } from "./dialects/partner/prices.ts";
import { type Answered, agentFor, type Failed, failed, unasked } from "./http.ts";

export interface PriceClientOptions {
  /** As of the events, without the family. */
  readonly baseUrl: string;
  /** Where each series is, after `baseUrl`, with {region} in it; null: nowhere. */
  readonly paths: Readonly<Record<PriceKind, string | null>>;
  readonly tokens: Tokens;
  /** For a whole request; default 10 s. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** Spends one of the hour's requests that all share (DESIGN 5.7); false: none is left. */
  readonly mayAsk: () => boolean;
}

const MAX_BYTES = 1024 * 1024;
/** Prices may not take the requests that events need. */
const REQUESTS_PER_HOUR = 60;

/** The partner's prices, read (partner-interface 4.2). Nothing here rejects, and nothing here slows events down. */
export class PriceClient implements AsyncDisposable {
  readonly #options: PriceClientOptions;
  readonly #deadline: Millis;
  readonly #agent: Agent;
  readonly #origin: string;
  readonly #base: string;
  readonly #allowed: () => boolean;
  readonly #forbidden: ForbiddenEndpoint;
  /** Monotonic: the partner asked us to be quiet about prices until then. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #quietBecause = "";
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: PriceClientOptions) {
    this.#options = options;
    this.#deadline = options.deadline ?? seconds(10);
    this.#agent = agentFor(MAX_BYTES, this.#deadline);
    const { origin, pathname } = new URL(options.baseUrl);
    this.#origin = origin;
    this.#base = pathname.replace(/\/+$/, "");
    const budget = hourlyBudget(REQUESTS_PER_HOUR, options.monotonic);
    this.#allowed = () => budget() && options.mayAsk();
    this.#forbidden = new ForbiddenEndpoint(options.monotonic);
  }

  /** One series, as far as it can be read. One request at a time: two refused at once would cost the events their token. */
  ask(query: PriceQuery): Promise<PricesAsked> {
    const answer = this.#turn.then(() => this.#ask(query));
    this.#turn = answer;
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  async #ask({ region, kind }: PriceQuery): Promise<PricesAsked> {
    const path = this.#options.paths[kind]?.replaceAll("{region}", encodeURIComponent(region));
    if (path === undefined) return refused(failed("no path is configured for it", 404, null));
    const answer = this.#waiting() ?? this.#overspent() ?? (await this.#get(`${this.#base}${path}`));
    if (answer.kind === "failed") return refused(answer);
    const read = readPrices(answer.body, region, answer.at);
    if (read.kind === "unreadable") return read;
    const { prices, doubts, raw } = read;
    return { kind: "read", series: { region, kind, fetchedAt: answer.at, prices, doubts, raw } };
  }

  /** Nothing is asked inside the window of a Retry-After (F33), nor soon after a refused token (F34). */
  #waiting(): Failed | null {
    const wait = this.#quietUntil - this.#options.monotonic();
    return wait > 0 ? unasked(this.#quietBecause, millis(wait)) : null;
  }

  #overspent(): Failed | null {
    return this.#allowed() ? null : unasked("this hour's requests are spent", null);
  }

  async #get(path: string): Promise<Answered | Failed> {
    const { tokens, now, monotonic } = this.#options;
    const answer = await authorizedGet(
      {
        agent: this.#agent,
        origin: this.#origin,
        tokens,
        forbidden: this.#forbidden,
        deadline: this.#deadline,
        now,
        mayAskAgain: this.#allowed,
      },
      path,
    );
    if (answer.kind === "failed") return answer;
    const failure = failureOf(answer, [], "prices");
    if (failure === null) return answer;
    if (QUIETING.includes(answer.status)) {
      this.#quietUntil = monotonic() + (failure.retryAfter ?? 0);
      this.#quietBecause = failure.reason;
    }
    return failure;
  }
}

/** Not a matter of one region. */
const QUIETING = [401, 429, 503];

/** What the next try will hardly change: the request itself, and our rights. */
const LASTING = [400, 403, 404, 405, 410, 414, 422];

const refused = ({ reason, status, retryAfter }: Failed): PricesAsked => ({
  kind: "failed",
  reason,
  retry: status === null || !LASTING.includes(status),
  retryAfter,
});
