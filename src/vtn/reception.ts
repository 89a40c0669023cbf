import type { Delivery, EventHint, IngestAnswer, IngestResult } from "../domain/delivery.ts";
import type { Instant } from "../domain/units.ts";
import { type Pace, bucket } from "../platform/listener.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { hasBody, type HeaderFields, headerText, isPlain, type Monotonic, readsAsJson } from "./http.ts";
import { type AuthFault, headerFault, signatureDiffers, type RefusalReason } from "./refusals.ts";
import { type Scheme, verify } from "./signature.ts";

export interface ReceptionOptions {
  readonly scheme: Scheme;
  readonly dialect: Dialect;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** Resolves after the commit. Only then is the delivery acknowledged. */
  readonly ingest: (delivery: Delivery) => Promise<IngestAnswer>;
  /** Requests a fetch: of single events of which only the id arrived, or of the list. */
  readonly hint: (wanted: EventHint) => void;
}

/** Result of one webhook request, before it becomes an HTTP answer. */
export type Reception =
  /** `hint`: nothing was ingested, a fetch was requested instead. */
  | { readonly kind: "ingested"; readonly ingested: IngestResult; readonly hint: boolean }
  | {
      readonly kind: "refused";
      readonly status: 400 | 401 | 413 | 429 | 503;
      readonly reason: RefusalReason;
      /** Sent to the sender. */
      readonly error: string;
      /** Logged for the operator. */
      readonly explanation: string;
      /** Seconds. */
      readonly retryAfter: number | null;
      /** The sender is the partner. */
      readonly proven: boolean;
    };

/** Generous, because a burst with one event per vehicle is normal. */
const PARTNER_PACE: Pace = { perSecond: 2000, burst: 5000 };
/** Hints are unsigned, so any sender can flood them. The list is fetched at most every ten seconds anyway. */
const HINT_PACE: Pace = { perSecond: 50, burst: 500 };
const NOTHING: IngestResult = { accepted: 0, repeats: 0, rejected: 0 };

/** Checks the signature over the raw bytes, then the pace; then parses; then waits for the commit. */
export function receive(
  options: ReceptionOptions,
): (headers: HeaderFields, rawBody: Buffer, at: Instant) => Promise<Reception> {
  const { scheme, dialect, ingest, hint } = options;
  const proven = scheme.kind !== "none";
  const mayPass = bucket(proven ? PARTNER_PACE : HINT_PACE, options.monotonic);
  const rejected = (
    status: 400 | 401 | 413 | 429 | 503,
    reason: RefusalReason,
    error: string,
    { retryAfter = null, explanation = error }: { retryAfter?: number | null; explanation?: string } = {},
  ): Reception => ({
    kind: "refused",
    status,
    reason,
    error,
    explanation,
    retryAfter,
    proven: proven && status !== 401,
  });

  return async (headers, rawBody, at) => {
    if (!verify(scheme, headers, rawBody, at)) {
      const { reason, explanation } = headerFault(scheme, headers, at) ?? signatureDiffers(scheme);
      return rejected(401, reason, "unauthorized", { explanation });
    }
    if (!mayPass()) {
      // The list also holds the events of a rejected delivery.
      hint("list");
      return rejected(429, "tooMany", "too many requests", { retryAfter: 1 });
    }
    if (!proven) {
      // The body is not parsed: it is unsigned, and could be made slow to parse.
      hint("list");
      return { kind: "ingested", ingested: NOTHING, hint: true };
    }
    const body = dialect.readDelivery(rawBody);
    if (body.kind === "unparsable") return rejected(400, "unreadable", body.reason);
    if (body.kind === "overfull") {
      hint("list");
      return rejected(413, "tooLarge", body.reason);
    }
    if (body.fetchById.length > 0) hint(body.fetchById);
    if (body.poll) hint("list");
    const { notices, foreign } = body;
    if (notices.length === 0)
      return { kind: "ingested", ingested: { ...NOTHING, repeats: foreign }, hint: false };
    const answer = await ingest({
      source: "webhook",
      at,
      askedAt: at,
      notices,
      complete: false,
    });
    if (!answer.ok) return rejected(503, "notStored", answer.reason, { retryAfter: 5 });
    const { ingested } = answer;
    return { kind: "ingested", ingested: { ...ingested, repeats: ingested.repeats + foreign }, hint: false };
  };
}

/** A request that is refused by its head alone, or for what it asks for. */
export interface Refused {
  readonly status: number;
  readonly reason: RefusalReason;
  /** Sent to the sender. */
  readonly error: string;
  /** Logged for the operator. */
  readonly explanation: string;
}

export const refused = (
  status: number,
  reason: RefusalReason,
  error: string,
  explanation = error,
): Refused => ({
  status,
  reason,
  error,
  explanation,
});

/** Finds a fault in the head of a request, so that its body need not be read. */
export function headRefusal(scheme: Scheme, headers: HeaderFields, now: Instant): Refused | null {
  const type = headerText(headers, "content-type");
  if (type === null ? hasBody(headers) : !readsAsJson(type))
    return refused(415, "contentType", "JSON in UTF-8 only");
  if (!isPlain(headers)) return refused(415, "contentEncoding", "no content encoding");
  const fault = headerFault(scheme, headers, now) ?? tokenFault(scheme, headers, now);
  return fault === null ? null : refused(401, fault.reason, "unauthorized", fault.explanation);
}

/** A bearer token stands in the head. */
const tokenFault = (scheme: Scheme, headers: HeaderFields, now: Instant): AuthFault | null =>
  scheme.kind === "bearer" && !verify(scheme, headers, Buffer.alloc(0), now)
    ? signatureDiffers(scheme)
    : null;
