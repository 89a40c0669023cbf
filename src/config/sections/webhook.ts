import * as z from "zod";

import type { Millis } from "../../domain/units.ts";
import type { Path } from "../explain.ts";
import { address, trustedProxies, type Address } from "../fields/address.ts";
import type { KeyPair, OpenPem, PemSource } from "../fields/pem.ts";
import { duration } from "../fields/quantities.ts";
import { openAll, pem, secrets, type OpenSecret, type Secrets } from "../fields/secret.ts";

/** Minimum length of a Standard Webhooks key, in bytes. */
const SHORTEST = 24;

/**
 * Key of a Standard Webhooks secret: base64, with or without `whsec_`. Null: not canonical base64, or too
 * short.
 */
export function webhookKey(secret: string): Buffer | null {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  // Node ignores characters that are not base64: `whsec_!!` would be an empty key, and anyone could sign
  // with it.
  return key.toString("base64") === text && key.length >= SHORTEST ? key : null;
}

/** Reason why such a secret cannot be used, as the end of a sentence. Null: it can. */
export const webhookKeyFault = (secret: string): string | null =>
  webhookKey(secret) === null ? `which is not base64 of at least ${SHORTEST} bytes` : null;

const secretOf = (scheme: string) =>
  secrets.describe(
    `Secret of ${scheme}, as { file: PATH } or { env: NAME }; during a rotation a list, and each entry is accepted. Required.`,
  );

const headerName = (example: string) =>
  z
    .string({ error: `the name of an HTTP header, e.g. ${example}` })
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/);

const hmac = z.strictObject({
  header: headerName("X-Payload-Signature")
    .prefault("X-Payload-Signature")
    .describe(
      "Header that carries the signature of the raw body. Default X-Payload-Signature. Change it to what the partner sends.",
    ),
  algorithm: z
    .enum(["sha256", "sha512"])
    .prefault("sha256")
    .describe(
      "Hash of the HMAC: sha256 or sha512. Default sha256. Change it to what the partner signs with.",
    ),
  encoding: z
    .enum(["base64", "hex"])
    .prefault("base64")
    .describe(
      "How the signature is written in the header: base64 or hex. Default base64. Change it to what the partner sends.",
    ),
  timestamp: z
    .strictObject({
      header: headerName("X-Payload-Timestamp").describe(
        "Header with the time of signing: Unix seconds, Unix milliseconds or ISO 8601. Required within timestamp.",
      ),
      tolerance: duration("1s", "1h")
        .prefault("5m")
        .describe(
          "Largest difference of that time from this machine's clock, in both directions. Default 5m. Increase it if deliveries take longer.",
        ),
    })
    .optional()
    .describe(
      "The signature also covers a timestamp, as <timestamp>.<body>: a captured delivery cannot be sent again later. Left out: the signature covers the body alone.",
    ),
  secret: secretOf("the HMAC"),
});

const auth = z.union(
  [
    z.enum(["none"]),
    z.strictObject({
      hmac: hmac
        .optional()
        .describe("The raw body is signed with HMAC and the signature stands in one header."),
      standardWebhooks: z
        .strictObject({
          secret: secretOf("Standard Webhooks, whsec_ and base64 or bare base64, of at least 24 bytes"),
        })
        .optional()
        .describe(
          "Deliveries are signed as standardwebhooks.com says: webhook-id, webhook-timestamp, webhook-signature.",
        ),
      bearer: z
        .strictObject({ secret: secretOf("the Authorization: Bearer header, the token itself") })
        .optional()
        .describe(
          "Deliveries carry a fixed token. Weaker than a signature: only with TLS, behind a trusted proxy or on loopback.",
        ),
    }),
  ],
  { error: "none, or exactly one of hmac, standardWebhooks and bearer, as a section with its secret" },
);

export const webhookSection = z.strictObject({
  listen: address
    .prefault("0.0.0.0:8090")
    .describe(
      "Host and port that the partner's deliveries reach; [::]:8090 for IPv6, port 0 for any free one. Default 0.0.0.0:8090.",
    ),
  path: z
    .string({ error: "a path that starts with a slash, e.g. /webhooks/events" })
    .regex(/^\/[A-Za-z0-9._~/-]{0,255}$/)
    .prefault("/webhooks/events")
    .describe("Path of the deliveries, as registered at the partner. Default /webhooks/events."),
  trustProxy: trustedProxies.describe(
    "Addresses or networks of your reverse proxies: their X-Forwarded-For names the sender. true accepts that header from everyone, so it is only logged. Default false.",
  ),
  tls: z
    .strictObject({
      cert: pem.describe("PEM file of the certificate, with its chain. Required within tls."),
      key: pem.describe("PEM file of the certificate's private key. Required within tls."),
      clientCa: pem
        .optional()
        .describe(
          "PEM file of the authority that signed the partner's client certificate; a sender without one is refused. Left out: no certificate is required.",
        ),
    })
    .optional()
    .describe(
      "Serves HTTPS. The files are read again on SIGHUP. Leave it out behind a reverse proxy that serves HTTPS.",
    ),
  auth: auth
    .optional()
    .describe(
      "How a delivery proves where it comes from: exactly one of hmac, standardWebhooks or bearer. none (or left out): a delivery only triggers a fetch, its body is never acted on.",
    ),
});

/** Authentication of deliveries. */
export type WebhookAuth =
  | {
      readonly kind: "hmac";
      readonly header: string;
      readonly algorithm: "sha256" | "sha512";
      readonly encoding: "base64" | "hex";
      /** Null: the signature covers the body alone. */
      readonly timestamp: { readonly header: string; readonly tolerance: Millis } | null;
      readonly secrets: Secrets;
    }
  | { readonly kind: "standardWebhooks" | "bearer"; readonly secrets: Secrets }
  /** Hint: a delivery only triggers a fetch. */
  | { readonly kind: "none" };

export interface WebhookConfig {
  readonly listen: Address;
  readonly path: string;
  readonly trustProxy: boolean | readonly string[];
  /** Null: plain HTTP. */
  readonly tls: PemSource<KeyPair> | null;
  /** Null: no client certificate is required. */
  readonly clientCa: PemSource<string> | null;
  readonly auth: WebhookAuth;
}

type Section = z.infer<typeof webhookSection>;

function authConfig(chosen: Section["auth"], open: OpenSecret): WebhookAuth {
  if (chosen === undefined || chosen === "none") return { kind: "none" };
  const path: Path = ["webhook", "auth"];
  if (chosen.hmac !== undefined) {
    const { header, algorithm, encoding, timestamp = null, secret } = chosen.hmac;
    return {
      kind: "hmac",
      header,
      algorithm,
      encoding,
      timestamp,
      secrets: openAll(secret, [...path, "hmac", "secret"], open),
    };
  }
  for (const kind of ["standardWebhooks", "bearer"] as const) {
    const scheme = chosen[kind];
    if (scheme !== undefined)
      return {
        kind,
        secrets: openAll(
          scheme.secret,
          [...path, kind, "secret"],
          open,
          kind === "standardWebhooks" ? webhookKeyFault : undefined,
        ),
      };
  }
  return { kind: "none" };
}

export const webhookConfig = (section: Section, open: OpenSecret, openPem: OpenPem): WebhookConfig => ({
  listen: section.listen,
  path: section.path,
  trustProxy: section.trustProxy,
  tls: section.tls === undefined ? null : openPem.keyPair(section.tls, ["webhook", "tls"]),
  clientCa:
    section.tls?.clientCa === undefined
      ? null
      : openPem.certificates(section.tls.clientCa, ["webhook", "tls", "clientCa"]),
  auth: authConfig(section.auth, open),
});
