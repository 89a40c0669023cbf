import type { Failed } from "../domain/delivery.ts";
import type { PriceQuery, PricesAsked } from "../domain/prices.ts";
import { seconds } from "../domain/units.ts";
import { type ApiAccess, authorizedGet, type RequestContext, requestsTo, QuietTime } from "./authorized.ts";
import { failureOf } from "./client.ts";
import { hourlyBudget, type Answered, failed, unasked } from "./http.ts";

export interface PriceClientOptions extends ApiAccess {
  /** Spends one of the hour's requests that events, prices and reports share. False: none is left. */
  readonly mayAsk: () => boolean;
}

const LIMITS = { maxBytes: 1024 * 1024, deadline: seconds(10) };
/** Limit for prices alone: they must not use the requests that events need. */
const REQUESTS_PER_HOUR = 60;

/** Reads the partner's prices. No method rejects, and events never wait for prices. */
export class PriceClient implements AsyncDisposable {
  readonly #options: PriceClientOptions;
  readonly #requests: RequestContext;
  readonly #base: string;
  readonly #allowed: () => boolean;
  readonly #quiet: QuietTime;
  #lastRequest: Promise<unknown> = Promise.resolve();

  constructor(options: PriceClientOptions) {
    this.#options = options;
    this.#quiet = new QuietTime(options.monotonic);
    const budget = hourlyBudget(REQUESTS_PER_HOUR, options.monotonic);
    this.#allowed = () => budget() && options.mayAsk();
    const { base, ...requests } = requestsTo(options, LIMITS, this.#allowed);
    this.#requests = requests;
    this.#base = base;
  }

  /** Requests one series. Only one request at a time: two refusals at once would drop the token that events use. */
  ask(query: PriceQuery): Promise<PricesAsked> {
    const answer = this.#lastRequest.then(() => this.#ask(query));
    this.#lastRequest = answer;
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests.agent.destroy();
  }

  async #ask({ region, kind }: PriceQuery): Promise<PricesAsked> {
    const path = this.#options.dialect.paths.prices[kind]?.replaceAll("{region}", encodeURIComponent(region));
    if (path === undefined) return refused(failed("no path is configured for it", 404, null));
    const answer = this.#quiet.refusal ?? this.#overspent() ?? (await this.#get(`${this.#base}${path}`));
    if (answer.kind === "failed") return refused(answer);
    const read = this.#options.dialect.readPrices(answer.body, region, answer.at);
    if (read.kind === "unreadable") return read;
    const { prices, doubts, raw } = read;
    return { kind: "read", series: { region, kind, fetchedAt: answer.at, prices, doubts, raw } };
  }

  #overspent(): Failed | null {
    return this.#allowed() ? null : unasked("this hour's requests are spent", null);
  }

  async #get(path: string): Promise<Answered | Failed> {
    const answer = await authorizedGet(this.#requests, path);
    if (answer.kind === "failed") return answer;
    const failure = failureOf(answer, [], "prices");
    if (failure === null) return answer;
    if (QUIETING.includes(answer.status)) this.#quiet.begin(failure);
    return failure;
  }
}

/** Statuses that concern all regions. */
const QUIETING = [401, 429, 503];

/** Statuses that a retry will hardly change: a bad request, or missing rights. */
const LASTING = [400, 403, 404, 405, 410, 414, 422];

const refused = ({ reason, status, retryAfter }: Failed): PricesAsked => ({
  kind: "failed",
  reason,
  retry: status === null || !LASTING.includes(status),
  retryAfter,
});
