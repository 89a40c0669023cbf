import type { Logger } from "pino";

import { type Instant, iso, instant, seconds } from "../domain/units.ts";
import { type Pace, bucket, bucketPerAddress } from "../platform/listener.ts";
import { type Monotonic, type HeaderFields, headerText } from "./http.ts";
import {
  type Scheme,
  STANDARD_FRESHNESS,
  formatAge,
  isFresh,
  readSignedAt,
  type SignedTimestamp,
} from "./signature.ts";

/** Reasons for rejecting a delivery. The sender gets only a 401. */
const AUTH_REASONS = [
  "headerMissing",
  "headerRepeated",
  "hexInsteadOfBase64",
  "base64InsteadOfHex",
  "malformed",
  "timestamp",
  "signatureDiffers",
] as const;
type AuthReason = (typeof AUTH_REASONS)[number];

/** Reason for rejecting a request or a connection. Used as labels of a metric: few, and never foreign text. */
export type RefusalReason =
  | AuthReason
  | "contentType"
  | "contentEncoding"
  | "notFound"
  | "method"
  | "echo"
  | "tooLarge"
  | "unreadable"
  | "tooMany"
  | "noRoom"
  | "notStored"
  | "pipelined"
  | "bodyDropped"
  | "tooManyConnections";

/** A request to the webhook that was refused. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** A sentence for the operator. */
  readonly explanation: string;
  readonly from: string;
  /** Null: the connection was closed without an answer. */
  readonly status: number | null;
}

/** Count and last occurrence of one reason. */
export type RefusalCount = {
  readonly count: number;
  /** ISO time. */
  readonly lastAt: string;
  readonly lastFrom: string;
  readonly explanation: string;
};

/** Count of rejected deliveries, and the newest of them. */
export interface RefusedDeliveries {
  readonly count: number;
  readonly at: Instant;
  readonly reason: string;
}

/** Unproven requests of one address that get a full answer. */
const ANSWERED: Pace = { perSecond: 5, burst: 60 };
/** Beyond that, so many get a 429 and are disconnected. The rest are disconnected without an answer. */
const TOO_MANY: Pace = { perSecond: 5, burst: 60 };
const LOG_PACE: Pace = { perSecond: 1, burst: 5 };

/** Paces, counts and logs rejected webhook requests. A flood fills neither the log nor the memory. */
export class Refusals {
  readonly #now: () => Instant;
  readonly #log: Logger;
  readonly #onRefused: (reason: RefusalReason) => void;
  readonly #mayAnswer: (address: string) => boolean;
  readonly #mayAnswerTooMany: (address: string) => boolean;
  readonly #mayLog: () => boolean;
  #refusedDeliveries: RefusedDeliveries | null = null;
  readonly #counts = new Map<RefusalReason, RefusalCount>();

  constructor(options: {
    readonly now: () => Instant;
    readonly monotonic: Monotonic;
    readonly log: Logger;
    readonly onRefused: (reason: RefusalReason) => void;
  }) {
    this.#now = options.now;
    this.#log = options.log;
    this.#onRefused = options.onRefused;
    this.#mayAnswer = bucketPerAddress(ANSWERED, options.monotonic);
    this.#mayAnswerTooMany = bucketPerAddress(TOO_MANY, options.monotonic);
    this.#mayLog = bucket(LOG_PACE, options.monotonic);
  }

  /** Chooses how the next unproven request of this address is handled. */
  treatment(address: string): "answer" | "tooMany" | "close" {
    if (this.#mayAnswer(address)) return "answer";
    return this.#mayAnswerTooMany(address) ? "tooMany" : "close";
  }

  record({ reason, explanation, from, status }: Refusal): void {
    const count = (this.#counts.get(reason)?.count ?? 0) + 1;
    this.#counts.set(reason, { count, lastAt: iso(this.#now()), lastFrom: from, explanation });
    if (isAuthReason(reason))
      this.#refusedDeliveries = {
        count: (this.#refusedDeliveries?.count ?? 0) + 1,
        at: this.#now(),
        reason: explanation,
      };
    this.#onRefused(reason);
    if (this.#mayLog()) this.#log.warn({ reason, why: explanation, from, status }, "webhook request refused");
  }

  /** A delivery was authenticated: earlier rejections are no longer a problem. */
  authenticated(): void {
    this.#refusedDeliveries = null;
  }

  /** Null: none since the last authenticated delivery. */
  refusedDeliveries(): RefusedDeliveries | null {
    return this.#refusedDeliveries;
  }

  /** By reason, for the status page. */
  view(): Readonly<Record<string, RefusalCount>> {
    return Object.fromEntries(this.#counts);
  }
}

const isAuthReason = (reason: RefusalReason): reason is AuthReason =>
  AUTH_REASONS.some((each) => each === reason);

/** Reason why a request does not prove its sender. */
export interface AuthFault {
  readonly reason: AuthReason;
  /** For the local log and status. It contains no part of the request. */
  readonly explanation: string;
}

const DIGEST_BYTES = { sha256: 32, sha512: 64 } as const;

/** Finds a fault in the headers alone, so that the body need not be read. Null: the headers are well formed. */
export function headerFault(scheme: Scheme, headers: HeaderFields, now: Instant): AuthFault | null {
  switch (scheme.kind) {
    case "none":
      return null;
    case "bearer":
      return (
        absence(headers, "Authorization") ??
        (/^bearer +\S/i.test(headerText(headers, "authorization") ?? "")
          ? null
          : fault("malformed", "the header Authorization does not say Bearer and a token"))
      );
    case "hmac":
      return (
        absence(headers, scheme.header) ??
        digestFault(scheme, headerText(headers, scheme.header) ?? "") ??
        (scheme.timestamp === null ? null : timestampFault(scheme.timestamp, headers, now))
      );
    case "standardWebhooks":
      return standardFault(headers, now);
  }
}

/** The fault of a delivery with well-formed headers. */
export const signatureDiffers = (scheme: Scheme): AuthFault =>
  scheme.kind === "bearer"
    ? fault("signatureDiffers", "the token differs: another secret")
    : fault(
        "signatureDiffers",
        `the signature differs: another secret, another algorithm, or a body that was changed on its way${coverage(scheme)}`,
      );

const coverage = (scheme: Scheme): string =>
  scheme.kind === "hmac" && scheme.timestamp !== null
    ? `; it has to cover the header ${scheme.timestamp.header}, a dot and the body`
    : "";

const fault = (reason: AuthReason, explanation: string): AuthFault => ({ reason, explanation });

function absence(headers: HeaderFields, name: string): AuthFault | null {
  const value = headers[name.toLowerCase()];
  if (value === undefined) return fault("headerMissing", `the header ${name} is missing`);
  if (headerText(headers, name) === "") return fault("headerMissing", `the header ${name} is empty`);
  // Node joins most repeated fields with a comma, which no signature contains.
  return typeof value === "string" ? null : fault("headerRepeated", `the header ${name} was sent twice`);
}

function digestFault(
  { header, algorithm, encoding }: Extract<Scheme, { kind: "hmac" }>,
  given: string,
): AuthFault | null {
  const text = given.trim();
  const prefix = `${algorithm}=`;
  const digest = text.toLowerCase().startsWith(prefix) ? text.slice(prefix.length) : text;
  const found = encodingOf(digest, DIGEST_BYTES[algorithm]);
  if (found === encoding) return null;
  if (found === null && digest.includes(","))
    return fault("headerRepeated", `the header ${header} holds more than one value`);
  if (found === null)
    return fault(
      "malformed",
      `the header ${header} holds no ${algorithm} in ${encoding}: wrong length or characters`,
    );
  const key = `webhook.auth.hmac.encoding is ${encoding}`;
  return found === "hex"
    ? fault("hexInsteadOfBase64", `the header ${header} holds hex, but ${key}`)
    : fault("base64InsteadOfHex", `the header ${header} holds base64, but ${key}`);
}

function encodingOf(digest: string, bytes: number): "base64" | "hex" | null {
  if (digest.length === 2 * bytes && /^[0-9a-f]+$/i.test(digest)) return "hex";
  return digest.length === 4 * Math.ceil(bytes / 3) && /^[A-Za-z0-9+/]+={0,2}$/.test(digest)
    ? "base64"
    : null;
}

function timestampFault(
  { header, tolerance }: SignedTimestamp,
  headers: HeaderFields,
  now: Instant,
): AuthFault | null {
  const missing = absence(headers, header);
  if (missing !== null) return missing;
  const at = readSignedAt(headerText(headers, header) ?? "");
  if (at === null)
    return fault(
      "malformed",
      `the header ${header} is neither Unix seconds, nor Unix milliseconds, nor ISO 8601`,
    );
  if (isFresh(at, now, { oldest: tolerance, earliest: tolerance })) return null;
  return untimely(at, now, `webhook.auth.hmac.timestamp.tolerance is ${tolerance / 1000} s`);
}

const untimely = (at: Instant, now: Instant, limit: string): AuthFault =>
  fault(
    "timestamp",
    `the delivery was signed ${formatAge(at, now)}, and ${limit}: it was delayed or replayed, or one clock is wrong`,
  );

function standardFault(headers: HeaderFields, now: Instant): AuthFault | null {
  for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
    const missing = absence(headers, name);
    if (missing !== null) return missing;
  }
  const timestamp = headerText(headers, "webhook-timestamp") ?? "";
  if (!/^\d{1,11}$/.test(timestamp))
    return fault("malformed", "the header webhook-timestamp is not a number of seconds");
  const sent = instant(seconds(Number(timestamp)));
  if (!isFresh(sent, now, STANDARD_FRESHNESS))
    return untimely(sent, now, "the limit is 300 s ago or 60 s ahead");
  const signatures = (headerText(headers, "webhook-signature") ?? "").split(" ");
  return signatures.some((signature) => /^v1,[A-Za-z0-9+/]{43}=$/.test(signature))
    ? null
    : fault("malformed", "the header webhook-signature holds no v1 signature in base64");
}
