import { type PostAnswer, REPORT_REQUESTS_PER_HOUR } from "../domain/report.ts";
import { minutes, seconds } from "../domain/units.ts";
import {
  type ApiAccess,
  authorizedGet,
  authorizedPost,
  type RequestContext,
  requestsTo,
} from "./authorized.ts";
import { type HourlyBudget, hourlyBudget, retryAfterOf } from "./http.ts";

/** Requests within the last hour. */
export interface ReportRequests {
  readonly made: number;
  readonly most: number;
}

export interface ReportClientOptions extends ApiAccess {
  /** Spends one of the hour's requests that events, prices and reports share. False: none is left. */
  readonly mayAsk: () => boolean;
  /** Called when reports begin to use nearly all their requests of an hour. */
  readonly onNearlySpent: (use: ReportRequests) => void;
}

/** The partner answers with the report as stored, and ours may have 10 MB. The largest takes a while on a slow line. */
const LIMITS = { maxBytes: 32 * 1024 * 1024, deadline: seconds(60) };
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
  readonly #requests: RequestContext;
  readonly #path: string;
  readonly #allowed: () => boolean;
  readonly #budget: HourlyBudget;

  constructor(options: ReportClientOptions) {
    this.#options = options;
    this.#budget = hourlyBudget(REPORT_REQUESTS_PER_HOUR, options.monotonic);
    this.#allowed = () => this.#spend();
    const { base, ...requests } = requestsTo(options, LIMITS, this.#allowed);
    this.#requests = requests;
    this.#path = `${base}${options.dialect.paths.reports}`;
  }

  /**
   * Sends one report as composed. After a 401 the token is dropped and the request retried once. After a 404,
   * 409 or 410 the partner's list of reports on that event shows what the status means.
   */
  async post(body: string): Promise<PostAnswer> {
    if (!this.#allowed())
      return { kind: "silent", reason: "this hour's requests are spent", retryAfter: SPENT_PAUSE };
    const answer = await authorizedPost(this.#requests, this.#path, body);
    if (answer.kind === "failed")
      return { kind: "silent", reason: answer.reason, retryAfter: answer.retryAfter };
    const { status, headers, at } = answer;
    const text = firstLine(answer.body);
    const isListed = UNCLEAR.includes(status) ? await this.#isListed(body) : null;
    return isListed === null
      ? { kind: "answered", status, text, retryAfter: retryAfterOf(headers, at) }
      : { kind: "checked", status, text, isListed, retryAfter: null };
  }

  /** Requests within the last hour. Null: far below the limit of reports. */
  get nearlySpent(): ReportRequests | null {
    const made = this.#budget.taken();
    return made < NEARLY_ALL ? null : { made, most: REPORT_REQUESTS_PER_HOUR };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests.agent.destroy();
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
      const answer = await authorizedGet(this.#requests, `${this.#path}?${query.toString()}`);
      if (answer.kind === "failed" || answer.status !== 200) return null;
      const listed = dialect.readReportPage(answer.body);
      if (listed === null) return null;
      if (listed.reports.some((theirs) => dialect.isSameReport(ours, theirs))) return true;
      // A longer page means that this partner lists everything at once.
      if (listed.entries !== PAGE) return false;
    }
    return null;
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
