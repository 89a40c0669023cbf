import type { Agent } from "undici";
import type { PostAnswer } from "../core/reporting/outbox.ts";
import { type Instant, type Millis, minutes, seconds } from "../core/units.ts";
import { authorizedPost } from "./authorized.ts";
import { agentFor } from "./exchange.ts";
import { retryAfterOf } from "./headers.ts";
import { hourlyBudget, type Monotonic } from "./rate.ts";
import type { TokenSource } from "./token.ts";

export interface ReportClientOptions {
  /** As of the events, without the family. */
  readonly baseUrl: string;
  /** After `baseUrl`, e.g. `/energy-coordination/v1/reports`. */
  readonly path: string;
  readonly tokens: Pick<TokenSource, "get" | "drop">;
  /** For a whole request; default 60 s, as the largest report takes a while on a slow line. */
  readonly deadline?: Millis;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** Spends one of the hour's requests that all share (DESIGN 5.7); false: none is left. */
  readonly mayAsk: () => boolean;
}

/** The partner answers with the report as it has stored it, and ours may have 10 MB. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Of the requests beside the list that all share: the rest is left to events. */
const REQUESTS_PER_HOUR = 120;
const MOST_WORDS = 1000;
const SPENT_PAUSE = minutes(5);

/** Hands reports over to the partner (openadr3 0 and 2). Nothing here rejects, and nothing here slows events down. */
export class ReportClient implements AsyncDisposable {
  readonly #options: ReportClientOptions;
  readonly #deadline: Millis;
  readonly #agent: Agent;
  readonly #origin: string;
  readonly #path: string;
  readonly #allowed: () => boolean;

  constructor(options: ReportClientOptions) {
    this.#options = options;
    this.#deadline = options.deadline ?? seconds(60);
    this.#agent = agentFor(MAX_BYTES, this.#deadline);
    const { origin, pathname } = new URL(options.baseUrl);
    this.#origin = origin;
    this.#path = `${pathname.replace(/\/+$/, "")}${options.path}`;
    const budget = hourlyBudget(REQUESTS_PER_HOUR, options.monotonic);
    this.#allowed = () => budget() && options.mayAsk();
  }

  /** One report, as it was composed. A 401 costs the token, and one retry with a fresh one. */
  async post(body: string): Promise<PostAnswer> {
    if (!this.#allowed())
      return { kind: "silent", reason: "this hour's requests are spent", retryAfter: SPENT_PAUSE };
    const { tokens, now } = this.#options;
    const answer = await authorizedPost(
      {
        agent: this.#agent,
        origin: this.#origin,
        tokens,
        deadline: this.#deadline,
        now,
        mayAskAgain: this.#allowed,
      },
      this.#path,
      body,
    );
    if (answer.kind === "failed")
      return { kind: "silent", reason: answer.reason, retryAfter: answer.retryAfter };
    const { status, headers, at } = answer;
    return {
      kind: "answered",
      status,
      words: wordsOf(answer.body),
      retryAfter: retryAfterOf(headers, at),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

/** How an answer begins, in one line: it goes to logs and terminals. */
function wordsOf(body: Buffer): string {
  const start = body
    .subarray(0, 4 * MOST_WORDS)
    .toString("utf8")
    .toWellFormed();
  const line = start.replaceAll(/[\p{C}\s]+/gu, " ").trim();
  return line.length > MOST_WORDS ? `${line.slice(0, MOST_WORDS).toWellFormed()}…` : line;
}
