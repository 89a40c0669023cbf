import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { webhookKey } from "../config/webhookKey.ts";
import { type Instant, instant, minutes, seconds } from "../core/units.ts";
import { type HeaderFields, headerText } from "./headers.ts";
import { isFresh, readSignedAt, type SignedTimestamp } from "./signedTimestamp.ts";

/** The secrets that are valid now; more than one while one replaces the other (F71). Asked for each request. */
type Secrets = () => readonly string[];

/** How a delivery shows that it is the partner's (DESIGN 6.1). */
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
  /** Nothing is shown: a delivery is a hint, and its body is never acted on. */
  | { readonly kind: "none" };

/** Each costs a hash, and a header has room for thousands. */
const MOST_SIGNATURES = 16;
/** How far `webhook-timestamp` may be from now. */
export const STANDARD_FRESHNESS = { oldest: minutes(5), earliest: seconds(60) };

/** Whether a body, byte for byte as it came, is the partner's. `none` asks for nothing, so it is always true. */
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

/** What the signature covers before the body. Null: the timestamp is missing, unreadable or outside the tolerance. */
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

/** Standard Webhooks, symmetric: HMAC-SHA256 of `id.timestamp.body`, as `v1,<base64>`, several of them allowed. */
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

/** What node makes of its bytes in a header field: one character each. */
const asHeaderText = (secret: string): string => Buffer.from(secret, "utf8").toString("latin1");

/** An empty secret would let everybody sign. */
const active = (secrets: Secrets): readonly string[] => secrets().filter((secret) => secret !== "");

const withoutPrefix = (given: string, algorithm: string): string =>
  given.toLowerCase().startsWith(`${algorithm}=`) ? given.slice(algorithm.length + 1) : given;

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Digests are compared, so that lengths are equal, and all of them, so that time does not tell which one matched. */
function anySame(given: readonly string[], expected: readonly string[]): boolean {
  const wanted = expected.map(digestOf);
  let same = false;
  for (const digest of given.map(digestOf)) {
    for (const other of wanted) same = timingSafeEqual(digest, other) || same;
  }
  return same;
}
