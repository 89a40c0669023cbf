import { createHash, createHmac, timingSafeEqual } from "node:crypto";

import { webhookKey } from "../config/sections/webhook.ts";
import { type Instant, instant, minutes, seconds, between, type Millis } from "../domain/units.ts";
import { readMoment } from "./dialects/partner/fields.ts";
import { type HeaderFields, headerText } from "./http.ts";

/** The secrets that are valid now; two while one replaces the other. Called for each request. */
type Secrets = () => readonly string[];

/** The way in which a delivery is authenticated. */
export type Scheme =
  | {
      readonly kind: "hmac";
      readonly header: string;
      readonly algorithm: "sha256" | "sha512";
      readonly encoding: "base64" | "hex";
      /** Null: the signature covers the body alone. Else it covers `<timestamp>.<body>`, the timestamp as it was sent. */
      readonly timestamp: SignedTimestamp | null;
      readonly secrets: Secrets;
    }
  | { readonly kind: "standardWebhooks"; readonly secrets: Secrets }
  | { readonly kind: "bearer"; readonly secrets: Secrets }
  /** No authentication: a delivery is a hint, and its body is never acted on. */
  | { readonly kind: "none" };

/** Each signature costs a hash, and a header has room for thousands. */
const MOST_SIGNATURES = 16;
/** Largest distance of `webhook-timestamp` from now. */
export const STANDARD_FRESHNESS = { oldest: minutes(5), earliest: seconds(60) };

/** True: the body, byte for byte as received, is authentic. `none` requires nothing, so it is always true. */
export function verify(scheme: Scheme, headers: HeaderFields, rawBody: Buffer, now: Instant): boolean {
  switch (scheme.kind) {
    case "none":
      return true;
    case "bearer": {
      const given = /^bearer +(.+)$/i.exec(headerText(headers, "authorization") ?? "")?.[1];
      return given !== undefined && anySame([given], active(scheme.secrets).map(asHeaderText));
    }
    case "hmac": {
      const given = headerText(headers, scheme.header);
      if (given === null) return false;
      const { algorithm, encoding } = scheme;
      const timestamp = signedText(scheme, headers, now);
      if (timestamp === null) return false;
      const expected = active(scheme.secrets).map((secret) =>
        createHmac(algorithm, secret).update(timestamp).update(rawBody).digest(encoding),
      );
      const digest = withoutPrefix(given.trim(), algorithm);
      return anySame([encoding === "hex" ? digest.toLowerCase() : digest], expected);
    }
    case "standardWebhooks":
      return verifyStandard(scheme.secrets, headers, rawBody, now);
  }
}

/**
 * The text that the signature covers before the body. Null: the timestamp is missing, unreadable or outside
 * the tolerance.
 */
function signedText(
  { timestamp }: Extract<Scheme, { kind: "hmac" }>,
  headers: HeaderFields,
  now: Instant,
): string | null {
  if (timestamp === null) return "";
  const { header, tolerance } = timestamp;
  const text = headerText(headers, header);
  const at = readSignedAt(text ?? "");
  return at !== null && isFresh(at, now, { oldest: tolerance, earliest: tolerance }) ? `${text}.` : null;
}

/** Standard Webhooks, symmetric: HMAC-SHA256 of `id.timestamp.body`, as `v1,<base64>`. Several signatures are allowed. */
function verifyStandard(secrets: Secrets, headers: HeaderFields, rawBody: Buffer, now: Instant): boolean {
  const id = headerText(headers, "webhook-id") ?? "";
  const timestamp = headerText(headers, "webhook-timestamp") ?? "";
  if (id === "" || !/^\d{1,11}$/.test(timestamp)) return false;
  const sent = instant(seconds(Number(timestamp)));
  if (!isFresh(sent, now, STANDARD_FRESHNESS)) return false;
  const keys = secrets().flatMap((secret) => webhookKey(secret) ?? []);
  const expected = keys.map((key) => {
    const signed = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(rawBody);
    return `v1,${signed.digest("base64")}`;
  });
  const given = (headerText(headers, "webhook-signature") ?? "").split(" ", MOST_SIGNATURES);
  return anySame(given, expected);
}

/** Node reads each byte of a header field as one character. */
const asHeaderText = (secret: string): string => Buffer.from(secret, "utf8").toString("latin1");

/** With an empty secret anybody could sign. */
const active = (secrets: Secrets): readonly string[] => secrets().filter((secret) => secret !== "");

const withoutPrefix = (given: string, algorithm: string): string =>
  given.toLowerCase().startsWith(`${algorithm}=`) ? given.slice(algorithm.length + 1) : given;

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Compares digests, so that lengths are equal. Compares all of them, so that timing does not show which one matched. */
function anySame(given: readonly string[], expected: readonly string[]): boolean {
  const wanted = expected.map(digestOf);
  let same = false;
  for (const digest of given.map(digestOf)) {
    for (const other of wanted) same = timingSafeEqual(digest, other) || same;
  }
  return same;
}

/** The header with the time of signing, and the largest distance of that time from now in either direction. */
export interface SignedTimestamp {
  readonly header: string;
  readonly tolerance: Millis;
}

/** Unix seconds (up to 11 digits), Unix milliseconds (12 to 14 digits) or ISO 8601. Null: none of them. */
export function readSignedAt(text: string): Instant | null {
  if (/^\d{1,11}$/.test(text)) return instant(seconds(Number(text)));
  if (/^\d{12,14}$/.test(text)) return instant(Number(text));
  const at = readMoment(text);
  return typeof at === "number" ? at : null;
}

/** True: a delivery signed at `at` is neither too old nor too far ahead of our clock. */
export const isFresh = (
  at: Instant,
  now: Instant,
  { oldest, earliest }: { readonly oldest: Millis; readonly earliest: Millis },
): boolean => between(at, now) <= oldest && between(now, at) <= earliest;

/** Age for the log: `310 s ago`, `70 s ahead of our clock`. */
export function formatAge(at: Instant, now: Instant): string {
  const age = between(at, now);
  return `${Math.abs(Math.round(age / 1000))} s ${age > 0 ? "ago" : "ahead of our clock"}`;
}

/**
 * Header fields that authenticate a body, made with the first secret. Used to send a delivery to our own
 * listener. `id`: id of the delivery.
 */
export function sign(
  scheme: Scheme,
  rawBody: Buffer,
  id: string,
  now: Instant,
): Readonly<Record<string, string>> {
  switch (scheme.kind) {
    case "none":
      return {};
    case "bearer":
      // A header field carries bytes: here the UTF-8 bytes of the secret.
      return { authorization: `Bearer ${Buffer.from(first(scheme), "utf8").toString("latin1")}` };
    case "hmac": {
      const { header, algorithm, encoding, timestamp } = scheme;
      const seconds = String(Math.floor(now / 1000));
      const digest = createHmac(algorithm, first(scheme))
        .update(timestamp === null ? "" : `${seconds}.`)
        .update(rawBody)
        .digest(encoding);
      return { [header]: digest, ...(timestamp === null ? {} : { [timestamp.header]: seconds }) };
    }
    case "standardWebhooks": {
      const timestamp = String(Math.floor(now / 1000));
      const digest = createHmac("sha256", webhookKey(first(scheme)) ?? "")
        .update(`${id}.${timestamp}.`)
        .update(rawBody)
        .digest("base64");
      return {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${digest}`,
      };
    }
  }
}

const first = ({ secrets }: Exclude<Scheme, { kind: "none" }>): string => secrets()[0] ?? "";
