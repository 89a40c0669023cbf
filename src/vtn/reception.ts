import type { Delivery, Taken } from "../core/delivery.ts";
import type { EventId, Instant } from "../core/units.ts";
import type { HeaderFields } from "./headers.ts";
import { type Monotonic, type Pace, bucket } from "./rate.ts";
import { type Scheme, verify } from "./signature.ts";
import { readWebhookBody } from "./wire/envelope.ts";
import { decodeJson } from "./wire/json.ts";

/** `ok: false`: nothing was stored, and the partner has to send it again. */
export type TakeAnswer =
  | { readonly ok: true; readonly taken: Taken }
  | { readonly ok: false; readonly reason: string };

export interface ReceptionOptions {
  readonly scheme: Scheme;
  readonly now: () => Instant;
  readonly monotonic: Monotonic;
  /** Resolves once the delivery is committed: only then is it acknowledged (DESIGN 1.3). */
  readonly take: (delivery: Delivery) => Promise<TakeAnswer>;
  /** What is worth fetching: events that came as an id only, or the list. */
  readonly hint: (ask: readonly EventId[] | "list") => void;
}

/** What becomes of one webhook request, before it is put into HTTP. */
export type Reception =
  /** `hint`: nothing was taken, a fetch was asked for instead. */
  | { readonly kind: "taken"; readonly taken: Taken; readonly hint: boolean }
  | {
      readonly kind: "refused";
      readonly status: 400 | 401 | 413 | 429 | 503;
      readonly error: string;
      /** Seconds. */
      readonly retryAfter: number | null;
      /** The sender is the partner. */
      readonly proven: boolean;
    };

/** One event per vehicle is a normal burst. */
const PARTNER_PACE: Pace = { perSecond: 2000, burst: 5000 };
/** Anybody can send a hint, and the list is fetched every ten seconds at most, however many there are. */
const HINT_PACE: Pace = { perSecond: 50, burst: 500 };
const NOTHING: Taken = { accepted: 0, repeats: 0, rejected: 0 };

/** Signature over the raw bytes, then pace, then parsing, then the commit (DESIGN 6.3). */
export function receive(
  options: ReceptionOptions,
): (headers: HeaderFields, rawBody: Buffer, at: Instant) => Promise<Reception> {
  const { scheme, take, hint } = options;
  const proven = scheme.kind !== "none";
  const mayPass = bucket(proven ? PARTNER_PACE : HINT_PACE, options.monotonic);
  const refused = (
    status: 400 | 401 | 413 | 429 | 503,
    error: string,
    retryAfter: number | null,
  ): Reception => ({
    kind: "refused",
    status,
    error,
    retryAfter,
    proven: proven && status !== 401,
  });

  return async (headers, rawBody, at) => {
    if (!verify(scheme, headers, rawBody, at)) return refused(401, "unauthorized", null);
    if (!mayPass()) {
      // What we turn away here is in the list as well.
      hint("list");
      return refused(429, "too many requests", 1);
    }
    if (!proven) {
      // What it says is not looked at: whoever sends it must not be able to make that take long.
      const decoded = decodeJson(rawBody);
      if (decoded.kind === "unparsable") return refused(400, decoded.reason, null);
      hint("list");
      return { kind: "taken", taken: NOTHING, hint: true };
    }
    const body = readWebhookBody(rawBody);
    if (body.kind === "unparsable") return refused(400, body.reason, null);
    if (body.kind === "overfull") {
      hint("list");
      return refused(413, body.reason, null);
    }
    if (body.ask.length > 0) hint(body.ask);
    if (body.poll) hint("list");
    if (body.notices.length === 0) return { kind: "taken", taken: NOTHING, hint: false };
    const answer = await take({ source: "webhook", at, askedAt: at, notices: body.notices, complete: false });
    return answer.ok ? { kind: "taken", taken: answer.taken, hint: false } : refused(503, answer.reason, 5);
  };
}
