import type { Delivery, IngestResult } from "../domain/delivery.ts";
import type { EventId, Instant } from "../domain/units.ts";
import { type Monotonic, type Pace, bucket } from "./budget.ts";
import { readWebhookBody } from "./dialects/partner/envelope.ts";
import type { HeaderFields } from "./http.ts";
import { headerFault, signatureDiffers, type RefusalReason } from "./refusals.ts";
import { type Scheme, verify } from "./signature.ts";

/** `ok: false`: nothing was stored, and the partner has to send it again. */
export type IngestAnswer =
  | { readonly ok: true; readonly taken: IngestResult }
  | { readonly ok: false; readonly reason: string };

export interface ReceptionOptions {
  readonly scheme: Scheme;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** Resolves once the delivery is committed: only then is it acknowledged (DESIGN 1.3). */
  readonly ingest: (delivery: Delivery) => Promise<IngestAnswer>;
  /** What is worth fetching: events that came as an id only, or the list. */
  readonly hint: (ask: readonly EventId[] | "list") => void;
}

/** What becomes of one webhook request, before it is put into HTTP. */
export type Reception =
  /** `hint`: nothing was taken, a fetch was asked for instead. */
  | { readonly kind: "taken"; readonly taken: IngestResult; readonly hint: boolean }
  | {
      readonly kind: "refused";
      readonly status: 400 | 401 | 413 | 429 | 503;
      readonly reason: RefusalReason;
      /** For the sender. */
      readonly error: string;
      /** For the operator. */
      readonly explanation: string;
      /** Seconds. */
      readonly retryAfter: number | null;
      /** The sender is the partner. */
      readonly proven: boolean;
    };

/** One event per vehicle is a normal burst. */
const PARTNER_PACE: Pace = { perSecond: 2000, burst: 5000 };
/** Anybody can send a hint, and the list is fetched every ten seconds at most, however many there are. */
const HINT_PACE: Pace = { perSecond: 50, burst: 500 };
const NOTHING: IngestResult = { accepted: 0, repeats: 0, rejected: 0 };

/** Signature over the raw bytes, then pace, then parsing, then the commit (DESIGN 6.3). */
export function receive(
  options: ReceptionOptions,
): (headers: HeaderFields, rawBody: Buffer, at: Instant) => Promise<Reception> {
  const { scheme, ingest: take, hint } = options;
  const proven = scheme.kind !== "none";
  const mayPass = bucket(proven ? PARTNER_PACE : HINT_PACE, options.monotonic);
  const refused = (
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
      return refused(401, reason, "unauthorized", { explanation });
    }
    if (!mayPass()) {
      // What we turn away here is in the list as well.
      hint("list");
      return refused(429, "tooMany", "too many requests", { retryAfter: 1 });
    }
    if (!proven) {
      // Nothing of it is read: anybody can send it, and reading could be made to take long.
      hint("list");
      return { kind: "taken", taken: NOTHING, hint: true };
    }
    const body = readWebhookBody(rawBody);
    if (body.kind === "unparsable") return refused(400, "unreadable", body.reason);
    if (body.kind === "overfull") {
      hint("list");
      return refused(413, "tooLarge", body.reason);
    }
    if (body.ask.length > 0) hint(body.ask);
    if (body.poll) hint("list");
    const { accepted, repeats } = body.counts;
    if (body.notices.length === 0)
      return { kind: "taken", taken: { accepted, repeats, rejected: 0 }, hint: false };
    const answer = await take({ source: "webhook", at, askedAt: at, notices: body.notices, complete: false });
    if (!answer.ok) return refused(503, "notStored", answer.reason, { retryAfter: 5 });
    const { taken } = answer;
    const all = { ...taken, accepted: taken.accepted + accepted, repeats: taken.repeats + repeats };
    return { kind: "taken", taken: all, hint: false };
  };
}
