import type { Logger } from "pino";

import type { Fetched, Delivery, Notice, Failed } from "../domain/delivery.ts";
import { type EventId, type Instant, type Millis, seconds, instant } from "../domain/units.ts";
import { type ResumableTask, runCooperatively } from "../platform/cooperative.ts";
import { type ApiAccess, type RequestContext, authorizedGet, requestsTo, QuietTime } from "./authorized.ts";
import type { Dialect, ListIndex } from "./dialects/dialect.ts";
import {
  hourlyBudget,
  type Answered,
  failed,
  headerText,
  isPlain,
  readsAsJson,
  retryAfterOf,
  unasked,
  clockSkew,
} from "./http.ts";

/** Pause after a refusal of our credentials: more requests do not cure it. */
const CREDENTIALS_WAIT = seconds(60);

/** Null: the answer can be read. Only 200 and the statuses in `alsoFine` are readable. */
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

/** Reads a list as a delivery. A list may hold 100,000 events, so the task yields after each. */
export function* listFrom(
  dialect: Dialect,
  answer: Answered,
  skew: Millis | null,
  earlier: ListIndex | null = null,
): ResumableTask<FetchedList> {
  const body = yield* dialect.readingList(answer.body, earlier);
  if (body.kind === "unparsable") return failed(body.reason, answer.status, null);
  const { notices, complete, unchanged, index = null } = body;
  const { at, askedAt } = answer;
  const delivery = { source: "list", at, askedAt, notices, complete } as const;
  return {
    kind: "read",
    delivery: unchanged === undefined ? delivery : { ...delivery, unchanged },
    skew,
    index,
  };
}

/** `index`: for the comparison with the next list. */
type FetchedList = Failed | (Extract<Fetched, { kind: "read" }> & { readonly index: ListIndex | null });

/** Reads one event as a delivery. Status 404 or 410 means that the id is gone. */
export function eventFrom(dialect: Dialect, id: EventId, answer: Answered, skew: Millis | null): Fetched {
  const fetch = (notices: readonly Notice[]): Delivery => ({
    source: "fetch",
    at: answer.at,
    askedAt: answer.askedAt,
    notices,
    complete: false,
  });
  if (answer.status !== 200) return { kind: "read", delivery: fetch([{ kind: "gone", id }]), skew };
  const body = dialect.readEvent(answer.body);
  if (body.kind === "unparsable") return failed(body.reason, answer.status, null);
  if (body.notices.some((notice) => notice.kind === "event" && notice.event.id !== id)) {
    return failed("the partner answered with another event", answer.status, null);
  }
  return { kind: "read", delivery: fetch(body.notices), skew };
}

interface SettledList {
  readonly body: Buffer;
  /** Null: the list can only be compared as a whole. */
  readonly index: ListIndex | null;
}

export interface VtnOptions extends ApiAccess {
  readonly log: Logger;
}

const LIMITS = { maxBytes: 16 * 1024 * 1024, deadline: seconds(10) };
/** Fetches by id, prices and retries, per hour. With the polls it stays under the limit of 360 requests per hour. */
const EXTRA_PER_HOUR = 300;

/** Reads the partner's events. No method rejects: a failure is a value. */
export class VtnClient implements AsyncDisposable {
  /**
   * Spends one of the hour's requests beside the list. Events, prices and reports share this budget. False:
   * none is left.
   */
  readonly mayAskMore: () => boolean;
  readonly #options: VtnOptions;
  readonly #requests: RequestContext;
  readonly #events: string;
  /** Complete lists that are not settled yet. */
  readonly #lists = new WeakMap<Delivery, SettledList>();
  /** The last settled list. A list with the same body needs no ingest, and an entry with the same bytes neither. */
  #settled: SettledList | null = null;
  /** The receipt of the last delivery that was not a complete list. */
  #otherAt: Instant = instant(0);
  readonly #quiet: QuietTime;

  constructor(options: VtnOptions) {
    this.#options = options;
    this.#quiet = new QuietTime(options.monotonic);
    this.mayAskMore = hourlyBudget(EXTRA_PER_HOUR, options.monotonic, () =>
      options.log.warn(
        { limit: EXTRA_PER_HOUR },
        "our own limit of requests in an hour is spent: the list is asked for as before, the rest waits",
      ),
    );
    const { base, ...requests } = requestsTo(options, LIMITS, this.mayAskMore);
    this.#requests = requests;
    this.#events = `${base}${options.dialect.paths.events}`;
  }

  /**
   * Requests all events. If the body equals the settled one byte for byte, the result is `unchanged`: a
   * complete list, not parsed again.
   */
  async list(): Promise<Fetched> {
    const expected = this.#settled?.body ?? null;
    const answer = this.#quiet.refusal ?? (await this.#request(this.#events, { expected }));
    if (answer.kind === "failed") return isElsewhere(answer.status) ? this.#misled(answer) : answer;
    const skew = clockSkew(answer.headers, answer.at);
    if (answer.body === this.#settled?.body) return { kind: "unchanged", at: answer.at, skew };
    const { dialect, monotonic } = this.#options;
    const earlier = this.#settled;
    const compared = await runCooperatively(
      listFrom(dialect, answer, skew, earlier?.index ?? null),
      monotonic,
    );
    // Another delivery was ingested meanwhile, so the entries that were left out may be new again.
    const hasGaps = compared.kind === "read" && compared.delivery.unchanged !== undefined;
    const fetched =
      hasGaps && earlier !== this.#settled
        ? await runCooperatively(listFrom(dialect, answer, skew), monotonic)
        : compared;
    if (fetched.kind !== "read") return fetched;
    const { index, ...read } = fetched;
    if (read.delivery.complete) this.#lists.set(read.delivery, { body: answer.body, index });
    return read;
  }

  /** Requests one event. `gone`: 404 or 410. It withdraws the event only after two complete lists without it. */
  async event(id: EventId): Promise<Fetched> {
    // A server resolves these as dot segments, however they are encoded: they would name another resource.
    if (id === "." || id === ".." || id === "" || !id.isWellFormed()) {
      return unasked("this id cannot be a part of an address", null);
    }
    const path = `${this.#events}/${encodeURIComponent(id)}`;
    const answer =
      this.#quiet.refusal ?? this.#overspent() ?? (await this.#request(path, { alsoFine: [404, 410] }));
    if (answer.kind === "failed")
      return answer.status !== null && ABOUT_THE_ID.includes(answer.status)
        ? { ...answer, asked: false }
        : answer;
    return eventFrom(this.#options.dialect, id, answer, clockSkew(answer.headers, answer.at));
  }

  /**
   * Call it with every delivery, from any source, after its commit and never before. After a complete list,
   * the same body is `unchanged`, and only entries with other bytes are parsed. After anything else, the next list is
   * parsed as a whole.
   */
  settled(delivery: Delivery): void {
    const list = this.#lists.get(delivery);
    // Another delivery was ingested after this list was requested, so the list may be older.
    // The next list is parsed.
    this.#settled = list !== undefined && delivery.askedAt > this.#otherAt ? list : null;
    if (list === undefined) this.#otherAt = delivery.at;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests.agent.destroy();
  }

  /** A wrong address: name the URL and the keys to check. */
  #misled(failure: Failed): Failed {
    const url = `${this.#requests.origin}${this.#events}`;
    return {
      ...failure,
      reason: `GET ${url} answered ${failure.status}: check ${this.#options.dialect.addressKeys}`,
    };
  }

  /** Spends one of the hour's extra requests. */
  #overspent(): Failed | null {
    return this.mayAskMore() ? null : unasked(`${EXTRA_PER_HOUR} extra requests in an hour`, null);
  }

  async #request(
    path: string,
    {
      alsoFine = [],
      expected = null,
    }: { readonly alsoFine?: readonly number[]; readonly expected?: Buffer | null },
  ): Promise<Answered | Failed> {
    const { log } = this.#options;
    const answer = await authorizedGet(this.#requests, path, expected);
    if (answer.kind === "failed") return answer;
    const failure = failureOf(answer, alsoFine);
    if (failure === null) return answer;
    log.debug({ status: failure.status, reason: failure.reason }, "the partner did not answer as hoped");
    if (answer.status === 429 || answer.status === 503) this.#quiet.begin(failure);
    return failure;
  }
}

/** Statuses that refuse one id. The partner itself is healthy. */
const ABOUT_THE_ID: readonly number[] = [400, 414, 422];

/** Statuses of a wrong base URL: a redirect, or no such resource. */
const isElsewhere = (status: number | null): boolean =>
  status !== null && ((status >= 300 && status < 400) || [404, 405, 410].includes(status));
