import { DateTime } from "luxon";
import { Agent } from "undici";

import type { Failed } from "../domain/delivery.ts";
import {
  type Instant,
  type Millis,
  between,
  instant,
  millis,
  minutes,
  seconds,
  hours,
} from "../domain/units.ts";
import { codeOf } from "../platform/text.ts";

/**
 * Collects a body in pieces. While it matches the expected body, no piece is kept. A body of megabytes every
 * 30 s would otherwise cost whole garbage collections.
 */
export class Body {
  readonly #expected: Buffer;
  /** Bytes that matched the expected body so far. */
  #same = 0;
  readonly #rest: Buffer[] = [];

  constructor(expected: Buffer | null) {
    this.#expected = expected ?? Buffer.alloc(0);
  }

  add(piece: Buffer): void {
    const end = this.#same + piece.length;
    const isAsExpected =
      this.#rest.length === 0 &&
      end <= this.#expected.length &&
      piece.compare(this.#expected, this.#same, end) === 0;
    if (isAsExpected) this.#same = end;
    else this.#rest.push(piece);
  }

  /** The whole body in one piece. It is the expected buffer itself where all bytes match. */
  whole(): Buffer {
    if (this.#rest.length === 0 && this.#same === this.#expected.length) return this.#expected;
    return Buffer.concat([this.#expected.subarray(0, this.#same), ...this.#rest]);
  }
}

/** Header fields of a request or an answer, names in lower case, as node and undici give them. */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The value of a field. Null: absent, or sent more than once. */
export function headerText(headers: HeaderFields, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return typeof value === "string" ? value : null;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/;
const CHARSET = /^charset\s*=\s*"?([^"]*)"?$/;

/** `application/json` or `application/…+json`, with any parameters, but in no charset other than UTF-8. */
export function readsAsJson(contentType: string): boolean {
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim().toLowerCase());
  return (
    JSON_TYPE.test(type) &&
    parameters.every((parameter) => {
      const charset = CHARSET.exec(parameter)?.[1];
      return charset === undefined || charset === "utf-8" || charset === "utf8";
    })
  );
}

/** False for anything compressed, as a whole or in transit: a small body could unpack to any size. */
export const isPlain = (headers: HeaderFields): boolean =>
  isAbsentOr(headers["content-encoding"], "identity") && isAbsentOr(headers["transfer-encoding"], "chunked");

/** False: the head announces no body. */
export const hasBody = (headers: HeaderFields): boolean =>
  headers["transfer-encoding"] !== undefined || (headerText(headers, "content-length") ?? "0") !== "0";

const isAbsentOr = (value: HeaderFields[string], only: string): boolean =>
  value === undefined || (typeof value === "string" && value.toLowerCase() === only);

const httpDate = (text: string | null): Instant | null => {
  if (text === null) return null;
  const at = DateTime.fromHTTP(text.trim());
  return at.isValid ? instant(at.toMillis()) : null;
};

/** Our clock minus the partner's `Date`. Null: no `Date`. The field counts whole seconds. */
export function clockSkew(headers: HeaderFields, at: Instant): Millis | null {
  const theirs = httpDate(headerText(headers, "date"));
  return theirs === null ? null : between(theirs, at);
}

const LONGEST_WAIT = minutes(15);
const ABSURD_WAIT = hours(24);

/** `Retry-After` as seconds or as a date, at most 15 min. Null: absent, unreadable or over a day. */
export function retryAfterOf(headers: HeaderFields, at: Instant): Millis | null {
  const text = headerText(headers, "retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return bounded(seconds(Number(text)));
  const until = httpDate(text);
  // Compare their date with their clock, not with ours.
  return until === null ? null : bounded(between(httpDate(headerText(headers, "date")) ?? at, until));
}

const bounded = (wait: Millis): Millis | null =>
  wait > ABSURD_WAIT ? null : millis(Math.min(Math.max(wait, 0), LONGEST_WAIT));

/** Builds a failure as a value. */
export const failed = (reason: string, status: number | null, retryAfter: Millis | null): Failed => ({
  kind: "failed",
  asked: true,
  reason,
  status,
  retryAfter,
});

/** A request that we did not send: our own limit, or an earlier Retry-After. */
export const unasked = (reason: string, retryAfter: Millis | null): Failed => ({
  ...failed(reason, null, retryAfter),
  asked: false,
});

/** A request. `origin` and `path` are separate because a joined URL would resolve dot segments. */
export interface HttpRequest {
  readonly origin: string;
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
  /** The body that the answer probably has. Null: unknown. */
  readonly expected: Buffer | null;
}

/** A whole answer of any status. */
export interface Answered {
  readonly kind: "answered";
  readonly status: number;
  readonly headers: HeaderFields;
  /** The `expected` buffer itself if the bytes are equal. */
  readonly body: Buffer;
  /** `askedAt`: when the request was sent. `at`: when the head of the answer arrived. */
  readonly askedAt: Instant;
  readonly at: Instant;
}

/** `silent`: no whole answer arrived. */
export type Answer = Answered | { readonly kind: "silent"; readonly reason: string };

/** An HTTP/1.1 client with answers of at most `maxBytes`. The caller destroys it. */
export const agentFor = (maxBytes: number, deadline: Millis): Agent =>
  // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment cannot turn it off.
  new Agent({
    maxResponseSize: maxBytes,
    connect: { timeout: deadline, rejectUnauthorized: true },
    allowH2: false,
  });

/**
 * Sends one request and reads the whole answer. The deadline covers connecting, head and body: a timeout per
 * read never fires on a server that drips. Redirects are answers like any other.
 */
export async function exchange(
  agent: Agent,
  { expected, ...request }: HttpRequest,
  deadline: Millis,
  now: () => Instant,
): Promise<Answer> {
  const signal = AbortSignal.timeout(deadline);
  const askedAt = now();
  try {
    const answer = await agent.request({ ...request, signal });
    const at = now();
    const body = new Body(expected);
    for await (const piece of answer.body) body.add(piece);
    const { statusCode: status, headers } = answer;
    return { kind: "answered", status, headers, body: body.whole(), askedAt, at };
  } catch (error) {
    const reason = signal.aborted ? `no complete answer within ${deadline} ms` : failureText(error);
    return { kind: "silent", reason };
  }
}

/** Failures that undici names by codes of its own. */
const IN_PLAIN_ENGLISH: ReadonlyMap<unknown, string> = new Map([
  ["UND_ERR_RES_EXCEEDED_MAX_SIZE", "the answer is larger than setpointd reads"],
  ["UND_ERR_SOCKET", "the connection was closed before the whole answer arrived"],
]);

const failureText = (error: unknown): string => {
  if (!(error instanceof Error)) return "the request failed";
  const found = codeOf(error);
  const plain = IN_PLAIN_ENGLISH.get(found);
  if (plain !== undefined) return plain;
  const code = typeof found === "string" ? found : error.name;
  if (error.message === "") return code;
  // Node's message of a refused connection begins with its code: "connect ECONNREFUSED 192.0.2.1:443".
  return error.message.includes(code) ? error.message : `${code}: ${error.message}`;
};

/** Monotonic clock, ms. */
export type Monotonic = () => number;

const HOUR = 3_600_000;

export interface HourlyBudget {
  /** False: the budget is spent. */
  (): boolean;
  /** Requests within the last hour. */
  readonly taken: () => number;
}

/**
 * A budget of `limit` requests in any sliding hour. Bounds our requests even if everything else retries wrongly.
 * `onSpent` is called for the first refusal after an hour without one.
 */
export function hourlyBudget(
  limit: number,
  monotonic: Monotonic,
  onSpent: () => void = () => {},
): HourlyBudget {
  const taken: number[] = [];
  let refusedAt = Number.NEGATIVE_INFINITY;
  const expire = (now: number): void => {
    while (taken[0] !== undefined && taken[0] <= now - HOUR) taken.shift();
  };
  const take = (): boolean => {
    const now = monotonic();
    expire(now);
    if (taken.length >= limit) {
      if (refusedAt <= now - HOUR) onSpent();
      refusedAt = now;
      return false;
    }
    taken.push(now);
    return true;
  };
  const count = (): number => {
    expire(monotonic());
    return taken.length;
  };
  return Object.assign(take, { taken: count });
}
