import { createHash } from "node:crypto";
import type { Logger } from "pino";
import type { Agent } from "undici";
import type { Delivery } from "../core/delivery.ts";
import { type EventId, type Instant, instant, type Millis, millis, seconds } from "../core/units.ts";
import { type Answered, agentFor, exchange } from "./exchange.ts";
import { type Failed, failed } from "./failed.ts";
import { type Fetched, eventFrom, failureOf, listFrom } from "./fetched.ts";
import { skewOf } from "./headers.ts";
import { type Monotonic, hourlyBudget } from "./rate.ts";
import type { TokenSource } from "./token.ts";

export interface VtnOptions {
  /** Without the family, e.g. `https://api.partner.example`. */
  readonly baseUrl: string;
  readonly family: "energy-coordination" | "vtn";
  readonly tokens: Pick<TokenSource, "get" | "drop">;
  /** For a whole call; default 10 s. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  readonly log: Logger;
}

const MAX_BYTES = 16 * 1024 * 1024;
/** Fetches by id and retries, per hour; with the rest it stays under the 360 of DESIGN 5.7. */
const EXTRA_PER_HOUR = 300;

/** The partner's events, read (partner-interface 4.3 and 4.4). Nothing here rejects: a failure is a value. */
export class VtnClient implements AsyncDisposable {
  readonly #options: VtnOptions;
  readonly #deadline: Millis;
  readonly #agent: Agent;
  readonly #mayAskMore: () => boolean;
  readonly #origin: string;
  readonly #events: string;
  readonly #digests = new WeakMap<Delivery, string>();
  #settled: string | null = null;
  /** The receipt of the last delivery that was not a complete list. */
  #otherAt: Instant = instant(0);
  /** Monotonic: the partner asked us to be quiet until then. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #quietBecause = "";

  constructor(options: VtnOptions) {
    this.#options = options;
    this.#deadline = options.deadline ?? seconds(10);
    this.#agent = agentFor(MAX_BYTES, this.#deadline);
    this.#mayAskMore = hourlyBudget(EXTRA_PER_HOUR, options.monotonic);
    const { origin, pathname } = new URL(options.baseUrl);
    this.#origin = origin;
    this.#events = `${pathname.replace(/\/+$/, "")}/${options.family}/v1/events`;
  }

  /** All events. A body that is byte for byte the settled one is `unchanged`: a complete list, not read again. */
  async list(): Promise<Fetched> {
    const answer = this.#waiting() ?? (await this.#ask(this.#events));
    if (answer.kind === "failed") return answer;
    const skew = skewOf(answer.headers, answer.at);
    const digest = createHash("sha256").update(answer.body).digest("hex");
    if (digest === this.#settled) return { kind: "unchanged", at: answer.at, skew };
    const fetched = listFrom(answer, skew);
    if (fetched.kind === "read" && fetched.delivery.complete) this.#digests.set(fetched.delivery, digest);
    return fetched;
  }

  /** One event. `gone` means 404 or 410: worth something only with two complete lists that lack it (DESIGN 5.2). */
  async event(id: EventId): Promise<Fetched> {
    // A server would resolve these as dot segments, however they are encoded: they would name another resource.
    if (id === "." || id === ".." || id === "" || !id.isWellFormed()) {
      return failed("this id cannot be a part of an address", null, null);
    }
    const path = `${this.#events}/${encodeURIComponent(id)}`;
    const answer = this.#waiting() ?? this.#overspent() ?? (await this.#ask(path, [404, 410]));
    return answer.kind === "failed" ? answer : eventFrom(id, answer, skewOf(answer.headers, answer.at));
  }

  /**
   * To be called with every delivery, whatever its source, once it is committed and never before. After a complete
   * list the same body is `unchanged`; after anything else the next list is read whatever its bytes.
   */
  settled(delivery: Delivery): void {
    const digest = this.#digests.get(delivery);
    // A list that was asked for before something else was taken in may be older than that: it is read again.
    this.#settled = digest !== undefined && delivery.askedAt > this.#otherAt ? digest : null;
    if (digest === undefined) this.#otherAt = delivery.at;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  /** Nothing is asked inside the window of a Retry-After (F33). In the same words as before: it is no new trouble. */
  #waiting(): Failed | null {
    const wait = this.#quietUntil - this.#options.monotonic();
    return wait > 0 ? failed(this.#quietBecause, null, millis(wait)) : null;
  }

  /** Spends one of the hour's extra requests. */
  #overspent(): Failed | null {
    return this.#mayAskMore() ? null : failed(`${EXTRA_PER_HOUR} extra requests in an hour`, null, null);
  }

  async #ask(path: string, alsoFine: readonly number[] = []): Promise<Answered | Failed> {
    const { monotonic, log } = this.#options;
    const answer = await this.#authorized(path);
    if (answer.kind === "failed") return answer;
    const failure = failureOf(answer, alsoFine);
    if (failure === null) return answer;
    log.debug({ status: failure.status, reason: failure.reason }, "the partner did not answer as hoped");
    if (answer.status === 429 || answer.status === 503) {
      this.#quietUntil = monotonic() + (failure.retryAfter ?? 0);
      this.#quietBecause = failure.reason;
    }
    return failure;
  }

  /** A 401 costs the token, and one retry with a fresh one (F34). */
  async #authorized(path: string): Promise<Answered | Failed> {
    const { tokens } = this.#options;
    const first = await tokens.get();
    if (first.kind === "failed") return withoutToken(first);
    const answer = await this.#send(path, first.token);
    if (answer.kind === "failed" || answer.status !== 401) return answer;
    tokens.drop(first.token);
    if (this.#overspent() !== null) return answer;
    const second = await tokens.get();
    return second.kind === "failed" ? withoutToken(second) : this.#send(path, second.token);
  }

  async #send(path: string, token: string): Promise<Answered | Failed> {
    const headers = {
      accept: "application/json",
      "accept-encoding": "identity",
      authorization: `Bearer ${token}`,
    };
    const ask = { origin: this.#origin, path, method: "GET", headers, body: null } as const;
    const answer = await exchange(this.#agent, ask, this.#deadline, this.#options.now);
    return answer.kind === "silent" ? failed(answer.reason, null, null) : answer;
  }
}

const withoutToken = (why: Failed): Failed => ({ ...why, reason: `no access token: ${why.reason}` });
