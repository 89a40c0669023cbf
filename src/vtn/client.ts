import type { Logger } from "pino";
import type { Agent } from "undici";

import type { Delivery, Notice } from "../domain/delivery.ts";
import { type EventId, type Instant, type Millis, seconds, instant, millis } from "../domain/units.ts";
import { type ResumableTask, runCooperatively } from "../platform/cooperative.ts";
import { type Asking, authorizedGet, ForbiddenEndpoint, type Tokens } from "./authorized.ts";
import { type Monotonic, hourlyBudget } from "./budget.ts";
import { readEventBody, readingList } from "./dialects/partner/envelope.ts";
import {
  type Answered,
  type Failed,
  failed,
  headerText,
  isPlain,
  readsAsJson,
  retryAfterOf,
  agentFor,
  unasked,
  skewOf,
} from "./http.ts";

/** What came of asking the partner. `skew`: how far our clock is ahead of its `Date`, null where it sent none. */
export type Fetched =
  | { readonly kind: "read"; readonly delivery: Delivery; readonly skew: Millis | null }
  /** The list that is already taken in, byte for byte. As a witness of absence it is a complete list. */
  | { readonly kind: "unchanged"; readonly at: Instant; readonly skew: Millis | null }
  | { readonly kind: "gone"; readonly delivery: Delivery; readonly skew: Millis | null }
  | Failed;

/** Credentials do not mend by asking often (F34). */
const CREDENTIALS_WAIT = seconds(60);

/** Why an answer cannot be read as what was asked for; null where it can. Nothing but 200 and `alsoFine` is an answer. */
export function failureOf(answer: Answered, alsoFine: readonly number[], what = "events"): Failed | null {
  const { status, headers, at } = answer;
  if (alsoFine.includes(status)) return null;
  if (status === 401) return failed("the partner refuses our token", status, CREDENTIALS_WAIT);
  if (status === 403) return failed(`the partner does not let us read ${what}`, status, CREDENTIALS_WAIT);
  if (status === 429 || status === 503) {
    return failed(`the partner answered ${status}`, status, retryAfterOf(headers, at));
  }
  if (status !== 200) return failed(`the partner answered ${status}`, status, null);
  if (!isPlain(headers)) return failed("the answer is compressed, which we did not ask for", status, null);
  const type = headerText(headers, "content-type");
  if (type !== null && !readsAsJson(type)) return failed("the answer is not JSON in UTF-8", status, null);
  return null;
}

/** A list of events as a delivery. There may be 100,000 of them: it can be left after each. */
export function* listFrom(answer: Answered, skew: Millis | null): ResumableTask<Fetched> {
  const body = yield* readingList(answer.body);
  if (body.kind === "unparsable") return failed(body.reason, answer.status, null);
  const { notices, complete } = body;
  const { at, askedAt } = answer;
  return { kind: "read", delivery: { source: "list", at, askedAt, notices, complete }, skew };
}

/** One event as a delivery, or that there is none by this id. */
export function eventFrom(id: EventId, answer: Answered, skew: Millis | null): Fetched {
  const fetch = (notices: readonly Notice[]): Delivery => ({
    source: "fetch",
    at: answer.at,
    askedAt: answer.askedAt,
    notices,
    complete: false,
  });
  if (answer.status !== 200) return { kind: "gone", delivery: fetch([{ kind: "gone", id }]), skew };
  const body = readEventBody(answer.body);
  if (body.kind === "unparsable") return failed(body.reason, answer.status, null);
  if (body.notices.some((notice) => notice.kind === "event" && notice.event.id !== id)) {
    return failed("the partner answered with another event", answer.status, null);
  }
  return { kind: "read", delivery: fetch(body.notices), skew };
}

export interface VtnOptions {
  /** Without the family, e.g. `https://api.partner.example`. */
  readonly baseUrl: string;
  readonly family: "energy-coordination" | "vtn";
  readonly tokens: Tokens;
  /** For a whole call; default 10 s. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  readonly log: Logger;
}

const MAX_BYTES = 16 * 1024 * 1024;
/** Fetches by id, prices and retries, per hour; with the rest it stays under the 360 of DESIGN 5.7. */
const EXTRA_PER_HOUR = 300;

/** The partner's events, read (partner-interface 4.3 and 4.4). Nothing here rejects: a failure is a value. */
export class VtnClient implements AsyncDisposable {
  /** Spends one of the hour's requests beside the list, which all that ask the partner share; false: none is left. */
  readonly mayAskMore: () => boolean;
  readonly #options: VtnOptions;
  readonly #agent: Agent;
  readonly #asking: Asking;
  readonly #events: string;
  /** Of complete lists that may be settled yet. */
  readonly #bodies = new WeakMap<Delivery, Buffer>();
  /** As long as this body comes again there is nothing to take in. */
  #settled: Buffer | null = null;
  /** The receipt of the last delivery that was not a complete list. */
  #otherAt: Instant = instant(0);
  /** Monotonic: the partner asked us to be quiet until then. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #quietBecause = "";

  constructor(options: VtnOptions) {
    this.#options = options;
    const deadline = options.deadline ?? seconds(10);
    this.#agent = agentFor(MAX_BYTES, deadline);
    this.mayAskMore = hourlyBudget(EXTRA_PER_HOUR, options.monotonic, () =>
      options.log.warn(
        { limit: EXTRA_PER_HOUR },
        "our own limit of requests in an hour is spent: the list is asked for as before, the rest waits",
      ),
    );
    const { origin, pathname } = new URL(options.baseUrl);
    const { tokens, now } = options;
    const forbidden = new ForbiddenEndpoint(options.monotonic);
    this.#asking = {
      agent: this.#agent,
      origin,
      tokens,
      forbidden,
      deadline,
      now,
      mayAskAgain: this.mayAskMore,
    };
    this.#events = `${pathname.replace(/\/+$/, "")}/${options.family}/v1/events`;
  }

  /** All events. A body that is byte for byte the settled one is `unchanged`: a complete list, not read again. */
  async list(): Promise<Fetched> {
    const answer = this.#waiting() ?? (await this.#ask(this.#events, { expected: this.#settled }));
    if (answer.kind === "failed") return isElsewhere(answer.status) ? this.#misled(answer) : answer;
    const skew = skewOf(answer.headers, answer.at);
    if (answer.body === this.#settled) return { kind: "unchanged", at: answer.at, skew };
    const fetched = await runCooperatively(listFrom(answer, skew), this.#options.monotonic);
    if (fetched.kind === "read" && fetched.delivery.complete) this.#bodies.set(fetched.delivery, answer.body);
    return fetched;
  }

  /** One event. `gone` means 404 or 410: worth something only with two complete lists that lack it (DESIGN 5.2). */
  async event(id: EventId): Promise<Fetched> {
    // A server would resolve these as dot segments, however they are encoded: they would name another resource.
    if (id === "." || id === ".." || id === "" || !id.isWellFormed()) {
      return unasked("this id cannot be a part of an address", null);
    }
    const path = `${this.#events}/${encodeURIComponent(id)}`;
    const answer = this.#waiting() ?? this.#overspent() ?? (await this.#ask(path, { alsoFine: [404, 410] }));
    if (answer.kind === "failed")
      return answer.status !== null && ABOUT_THE_ID.includes(answer.status)
        ? { ...answer, asked: false }
        : answer;
    return eventFrom(id, answer, skewOf(answer.headers, answer.at));
  }

  /**
   * To be called with every delivery, whatever its source, once it is committed and never before. After a complete
   * list the same body is `unchanged`; after anything else the next list is read whatever its bytes.
   */
  settled(delivery: Delivery): void {
    const body = this.#bodies.get(delivery);
    // A list that was asked for before something else was taken in may be older than that: it is read again.
    this.#settled = body !== undefined && delivery.askedAt > this.#otherAt ? body : null;
    if (body === undefined) this.#otherAt = delivery.at;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  /** Nothing is asked inside the window of a Retry-After (F33). In the same words as before: it is no new trouble. */
  #waiting(): Failed | null {
    const wait = this.#quietUntil - this.#options.monotonic();
    return wait > 0 ? unasked(this.#quietBecause, millis(wait)) : null;
  }

  /** Where there is no list, there is mostly nothing of the partner's. */
  #misled(failure: Failed): Failed {
    const url = `${this.#asking.origin}${this.#events}`;
    return { ...failure, reason: `GET ${url} answered ${failure.status}: check vtn.baseUrl and vtn.family` };
  }

  /** Spends one of the hour's extra requests. */
  #overspent(): Failed | null {
    return this.mayAskMore() ? null : unasked(`${EXTRA_PER_HOUR} extra requests in an hour`, null);
  }

  async #ask(
    path: string,
    {
      alsoFine = [],
      expected = null,
    }: { readonly alsoFine?: readonly number[]; readonly expected?: Buffer | null },
  ): Promise<Answered | Failed> {
    const { monotonic, log } = this.#options;
    const answer = await authorizedGet(this.#asking, path, expected);
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
}

/** Statuses that refuse one id. They say nothing of the partner's health. */
const ABOUT_THE_ID: readonly number[] = [400, 414, 422];

/** What somebody else's address answers: a redirect, or that there is no such thing. */
const isElsewhere = (status: number | null): boolean =>
  status !== null && ((status >= 300 && status < 400) || [404, 405, 410].includes(status));
