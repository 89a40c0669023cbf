import { DateTime } from "luxon";
import { Agent } from "undici";

import { type Instant, type Millis, between, instant, millis, minutes, seconds } from "../domain/units.ts";

/**
 * A body as it comes, piece by piece. As long as it comes as the expected one did, nothing of it is kept: megabytes that
 * live until the end of an answer, every 30 s, cost whole collections of garbage.
 */
export class Body {
  readonly #expected: Buffer;
  /** Bytes that came as they were expected. */
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

  /** All of it, in one piece: the expected buffer itself where it came byte for byte. */
  whole(): Buffer {
    if (this.#rest.length === 0 && this.#same === this.#expected.length) return this.#expected;
    return Buffer.concat([this.#expected.subarray(0, this.#same), ...this.#rest]);
  }
}

/** Header fields of a request or an answer, names in lower case, as node and undici give them. */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The value of a field; null where it is absent or was sent more than once. */
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

/** False for anything compressed, as a whole or on its way: a small body could then unpack to any size (F38). */
export const isPlain = (headers: HeaderFields): boolean =>
  isAbsentOr(headers["content-encoding"], "identity") && isAbsentOr(headers["transfer-encoding"], "chunked");

const isAbsentOr = (value: HeaderFields[string], only: string): boolean =>
  value === undefined || (typeof value === "string" && value.toLowerCase() === only);

const httpDate = (text: string | null): Instant | null => {
  if (text === null) return null;
  const at = DateTime.fromHTTP(text.trim());
  return at.isValid ? instant(at.toMillis()) : null;
};

/** How far our clock is ahead of the partner's `Date`; null where there is none. The field counts whole seconds. */
export function skewOf(headers: HeaderFields, at: Instant): Millis | null {
  const theirs = httpDate(headerText(headers, "date"));
  return theirs === null ? null : between(theirs, at);
}

const LONGEST_WAIT = minutes(15);
const ABSURD_WAIT = minutes(24 * 60);

/** `Retry-After` as seconds or as a date, at most 15 min; null where it is absent, unreadable or over a day (F32). */
export function retryAfterOf(headers: HeaderFields, at: Instant): Millis | null {
  const text = headerText(headers, "retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return bounded(seconds(Number(text)));
  const until = httpDate(text);
  // A date of theirs is held against their clock, not against ours.
  return until === null ? null : bounded(between(httpDate(headerText(headers, "date")) ?? at, until));
}

const bounded = (wait: Millis): Millis | null =>
  wait > ABSURD_WAIT ? null : millis(Math.min(Math.max(wait, 0), LONGEST_WAIT));

/** Nothing usable came back, or nothing was asked. */
export interface Failed {
  readonly kind: "failed";
  /** False: no request was made, or the answer is about one id only. Nothing new about the partner itself. */
  readonly asked: boolean;
  /** In words, without anything secret. */
  readonly reason: string;
  /** Of the answer; null where no whole answer came. */
  readonly status: number | null;
  /** Asking again before this has passed is pointless; null: the caller's own back-off. */
  readonly retryAfter: Millis | null;
}

/** A failure to answer, as a value. */
export const failed = (reason: string, status: number | null, retryAfter: Millis | null): Failed => ({
  kind: "failed",
  asked: true,
  reason,
  status,
  retryAfter,
});

/** Kept back by ourselves: a limit of ours, or a wait that an earlier answer told us. */
export const unasked = (reason: string, retryAfter: Millis | null): Failed => ({
  ...failed(reason, null, retryAfter),
  asked: false,
});

/** One request: `origin` and `path` apart, because a joined URL would resolve dot segments. */
export interface Ask {
  readonly origin: string;
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
  /** The body that the answer may well have; null: nobody knows. */
  readonly expected: Buffer | null;
}

/** A whole answer, whatever its status. */
export interface Answered {
  readonly kind: "answered";
  readonly status: number;
  readonly headers: HeaderFields;
  /** The very buffer that was `expected`, if it is the same byte for byte. */
  readonly body: Buffer;
  /** When it was asked for, and when its head came. */
  readonly askedAt: Instant;
  readonly at: Instant;
}

/** Silent: no whole answer came. */
export type Answer = Answered | { readonly kind: "silent"; readonly reason: string };

/** An HTTP/1.1 client whose answers cannot exceed `maxBytes`; to be destroyed at the end. */
export const agentFor = (maxBytes: number, deadline: Millis): Agent =>
  // `rejectUnauthorized` said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not turn it off.
  new Agent({
    maxResponseSize: maxBytes,
    connect: { timeout: deadline, rejectUnauthorized: true },
    allowH2: false,
  });

/**
 * Asks once and reads the whole answer. One deadline covers connecting, the head and the body: a timeout per
 * read never fires on a server that drips (F31). Redirects are answers like any other.
 */
export async function exchange(
  agent: Agent,
  { expected, ...ask }: Ask,
  deadline: Millis,
  now: () => Instant,
): Promise<Answer> {
  const signal = AbortSignal.timeout(deadline);
  const askedAt = now();
  try {
    const answer = await agent.request({ ...ask, signal });
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

const failureText = (error: unknown): string => {
  if (!(error instanceof Error)) return "the request failed";
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  return error.message === "" ? code : `${code}: ${error.message}`;
};
