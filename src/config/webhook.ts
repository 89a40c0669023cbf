import * as z from "zod";
import { address, type Address } from "./address.ts";
import type { Path } from "./mistakes.ts";
import type { KeyPair, OpenPem, PemSource } from "./pem.ts";
import { openAll, pem, secrets, type OpenSecret, type Secrets } from "./secret.ts";

const secretOf = (scheme: string) =>
  secrets.describe(
    `Secret of ${scheme}, as { file: PATH } or { env: NAME }; during a rotation a list, all of which are accepted. Required.`,
  );

const hmac = z.strictObject({
  header: z
    .string({ error: "the name of an HTTP header, e.g. X-Payload-Signature" })
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/)
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
        .strictObject({ secret: secretOf("Standard Webhooks, whsec_ and base64 or bare base64") })
        .optional()
        .describe(
          "Deliveries are signed as standardwebhooks.com says: webhook-id, webhook-timestamp, webhook-signature.",
        ),
      bearer: z
        .strictObject({ secret: secretOf("the Authorization: Bearer header, the token itself") })
        .optional()
        .describe("Deliveries carry a fixed token. Weaker than a signature: use it with TLS only."),
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
  trustProxy: z
    .boolean()
    .prefault(false)
    .describe("Believe the X-Forwarded headers; true only behind your own reverse proxy. Default false."),
  tls: z
    .strictObject({
      cert: pem.describe("PEM file of the certificate, with its chain. Required within tls."),
      key: pem.describe("PEM file of the certificate's private key. Required within tls."),
    })
    .optional()
    .describe(
      "Serve HTTPS here; both files are read again on SIGHUP. Leave it out behind a reverse proxy that does.",
    ),
  auth: auth
    .optional()
    .describe(
      "How a delivery proves where it comes from: exactly one of hmac, standardWebhooks or bearer. none (or left out): a delivery only triggers a fetch, its body is never acted on.",
    ),
});

/** How a delivery is authenticated. */
export type WebhookAuth =
  | {
      readonly kind: "hmac";
      readonly header: string;
      readonly algorithm: "sha256" | "sha512";
      readonly encoding: "base64" | "hex";
      readonly secrets: Secrets;
    }
  | { readonly kind: "standardWebhooks" | "bearer"; readonly secrets: Secrets }
  /** Hint: a delivery only triggers a fetch. */
  | { readonly kind: "none" };

export interface WebhookConfig {
  readonly listen: Address;
  readonly path: string;
  readonly trustProxy: boolean;
  /** Null: plain HTTP. */
  readonly tls: PemSource<KeyPair> | null;
  readonly auth: WebhookAuth;
}

type Section = z.infer<typeof webhookSection>;

function authConfig(chosen: Section["auth"], open: OpenSecret): WebhookAuth {
  if (chosen === undefined || chosen === "none") return { kind: "none" };
  const path: Path = ["webhook", "auth"];
  if (chosen.hmac !== undefined) {
    const { header, algorithm, encoding, secret } = chosen.hmac;
    return {
      kind: "hmac",
      header,
      algorithm,
      encoding,
      secrets: openAll(secret, [...path, "hmac", "secret"], open),
    };
  }
  for (const kind of ["standardWebhooks", "bearer"] as const) {
    const scheme = chosen[kind];
    if (scheme !== undefined)
      return { kind, secrets: openAll(scheme.secret, [...path, kind, "secret"], open) };
  }
  return { kind: "none" };
}

export const webhookConfig = (section: Section, open: OpenSecret, openPem: OpenPem): WebhookConfig => ({
  listen: section.listen,
  path: section.path,
  trustProxy: section.trustProxy,
  tls: section.tls === undefined ? null : openPem.keyPair(section.tls, ["webhook", "tls"]),
  auth: authConfig(section.auth, open),
});
