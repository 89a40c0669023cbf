import type { Agent } from "undici";

import { type PostAnswer, REPORT_REQUESTS_PER_HOUR } from "../domain/report.ts";
import { type Instant, type Millis, minutes, seconds } from "../domain/units.ts";
import {
  type RequestContext,
  authorizedGet,
  authorizedPost,
  ForbiddenEndpoint,
  type Tokens,
} from "./authorized.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { type HourlyBudget, hourlyBudget, type Monotonic, agentFor, retryAfterOf } from "./http.ts";

/** Requests within the last hour. */
export interface ReportRequests {
  readonly made: number;
  readonly most: number;
}

export interface ReportClientOptions {
  /** As for events. */
  readonly baseUrl: string;
  readonly dialect: Dialect;
  readonly tokens: Tokens;
  /** For a whole request; default 60 s, as the largest report takes a while on a slow line. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** Spends one of the hour's requests that events, prices and reports share. False: none is left. */
  readonly mayAsk: () => boolean;
  /** Called when reports begin to use nearly all their requests of an hour. */
  readonly onNearlySpent: (use: ReportRequests) => void;
}

/** The partner answers with the report as stored, and ours may have 10 MB. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Warning threshold within an hour. */
const NEARLY_ALL = 0.8 * REPORT_REQUESTS_PER_HOUR;
const LONGEST_LINE = 1000;
const SPENT_PAUSE = minutes(5);
/** Refusals with several causes: the report exists already, its event is gone, or the endpoint is wrong. */
const UNCLEAR: readonly number[] = [404, 409, 410];
/** Reports in one page of a VTN's list. */
const PAGE = 50;
const MOST_PAGES = 10;

/** Sends reports to the partner. No method rejects, and events never wait for reports. */
export class ReportClient implements AsyncDisposable {
  readonly #options: ReportClientOptions;
  readonly #deadline: Millis;
  readonly #agent: Agent;
  readonly #origin: string;
  readonly #path: string;
  readonly #allowed: () => boolean;
  readonly #budget: HourlyBudget;
  readonly #forbidden: ForbiddenEndpoint;

  constructor(options: ReportClientOptions) {
    this.#options = options;
    this.#deadline = options.deadline ?? seconds(60);
    this.#agent = agentFor(MAX_BYTES, this.#deadline);
    const { origin, pathname } = new URL(options.baseUrl);
    this.#origin = origin;
    this.#path = `${pathname.replace(/\/+$/, "")}${options.dialect.paths.reports}`;
    this.#budget = hourlyBudget(REPORT_REQUESTS_PER_HOUR, options.monotonic);
    this.#allowed = () => this.#spend();
    this.#forbidden = new ForbiddenEndpoint(options.monotonic);
  }

  /**
   * Sends one report as composed. After a 401 the token is dropped and the request retried once. After a 404,
   * 409 or 410 the partner's list of reports on that event shows what the status means.
   */
  async post(body: string): Promise<PostAnswer> {
    if (!this.#allowed())
      return { kind: "silent", reason: "this hour's requests are spent", retryAfter: SPENT_PAUSE };
    const answer = await authorizedPost(this.#context(), this.#path, body);
    if (answer.kind === "failed")
      return { kind: "silent", reason: answer.reason, retryAfter: answer.retryAfter };
    const { status, headers, at } = answer;
    const words = firstLine(answer.body);
    const isListed = UNCLEAR.includes(status) ? await this.#isListed(body) : null;
    return isListed === null
      ? { kind: "answered", status, words, retryAfter: retryAfterOf(headers, at) }
      : { kind: "checked", status, words, isListed, retryAfter: null };
  }

  /** Requests within the last hour. Null: far below the limit of reports. */
  get nearlySpent(): ReportRequests | null {
    const made = this.#budget.taken();
    return made < NEARLY_ALL ? null : { made, most: REPORT_REQUESTS_PER_HOUR };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  #spend(): boolean {
    const before = this.nearlySpent;
    const isAllowed = this.#budget() && this.#options.mayAsk();
    const after = this.nearlySpent;
    if (before === null && after !== null) this.#options.onNearlySpent(after);
    return isAllowed;
  }

  /** Null: the partner's list cannot be read, or has too many pages. */
  async #isListed(body: string): Promise<boolean | null> {
    const { dialect } = this.#options;
    const ours = dialect.reportIdentity(body);
    if (ours === null) return null;
    for (let page = 0; page < MOST_PAGES && this.#allowed(); page += 1) {
      const query = new URLSearchParams({ eventID: ours.event });
      if (page > 0) query.set("skip", String(page * PAGE));
      const answer = await authorizedGet(this.#context(), `${this.#path}?${query.toString()}`);
      if (answer.kind === "failed" || answer.status !== 200) return null;
      const listed = dialect.readReportPage(answer.body);
      if (listed === null) return null;
      if (listed.reports.some((theirs) => dialect.isSameReport(ours, theirs))) return true;
      // A longer page means that this partner lists everything at once.
      if (listed.entries !== PAGE) return false;
    }
    return null;
  }

  #context(): RequestContext {
    const { tokens, now } = this.#options;
    return {
      agent: this.#agent,
      origin: this.#origin,
      tokens,
      forbidden: this.#forbidden,
      deadline: this.#deadline,
      now,
      mayAskAgain: this.#allowed,
    };
  }
}

/** The start of an answer on one line, for logs and terminals. */
function firstLine(body: Buffer): string {
  const start = body
    .subarray(0, 4 * LONGEST_LINE)
    .toString("utf8")
    .toWellFormed();
  const line = start.replaceAll(/[\p{C}\s]+/gu, " ").trim();
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE).toWellFormed()}…` : line;
}
