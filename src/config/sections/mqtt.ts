import * as z from "zod";

import type { Path } from "../explain.ts";
import { address, type Address, brokerUrl } from "../fields/address.ts";
import type { KeyPair, OpenPem, PemSource } from "../fields/pem.ts";
import { topicPrefix } from "../fields/quantities.ts";
import { openFirst, pem, secrets, type OpenSecret, type Secret } from "../fields/secret.ts";

const embedded = z.strictObject({
  listen: address
    .prefault("127.0.0.1:1883")
    .describe(
      "Host and port of the broker inside setpointd. Default 127.0.0.1:1883. Open it to the chargers' network only.",
    ),
});

export const brokerSection = z.strictObject({
  url: brokerUrl
    .optional()
    .describe("Address of the MQTT broker: mqtt, mqtts, ws or wss. Either this or embedded is required."),
  embedded: embedded
    .optional()
    .describe(
      "Runs a small broker (MQTT 3.1.1) inside setpointd, instead of url. For trials and small sites.",
    ),
  username: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe("User name at the broker. Left out: no user name is sent."),
  password: secrets
    .optional()
    .describe("Password of username, as { file: PATH } or { env: NAME }. The first of a list is sent."),
  tls: z
    .strictObject({
      ca: pem
        .optional()
        .describe(
          "PEM file of the authority that signed the broker's certificate. Left out: the system's authorities.",
        ),
      cert: pem
        .optional()
        .describe("PEM file of our own certificate, if the broker requires one. Needs key."),
      key: pem.optional().describe("PEM file of the private key of cert."),
    })
    .optional()
    .describe("Certificates for mqtts and wss. The broker's certificate is always verified."),
  prefix: topicPrefix
    .prefault("setpointd")
    .describe("First levels of all native topics. The site's id follows. Default setpointd."),
});

/** Connection to one broker. */
export interface BrokerConfig {
  readonly reach:
    | { readonly kind: "url"; readonly url: string }
    | { readonly kind: "embedded"; readonly listen: Address };
  /** Null: none is sent. */
  readonly username: string | null;
  readonly password: Secret | null;
  /** Null: not configured. */
  readonly tls: {
    /** Null: the system's authorities. */
    readonly ca: PemSource<string> | null;
    /** Null: no certificate of our own. */
    readonly own: PemSource<KeyPair> | null;
  } | null;
  readonly prefix: string;
}

export type BrokerSection = z.infer<typeof brokerSection>;

/** `path`: of the section, e.g. `["mqtt"]` or `["brokers", "yard"]`. */
export function brokerConfig(
  section: BrokerSection,
  path: Path,
  open: OpenSecret,
  openPem: OpenPem,
): BrokerConfig {
  const { url, embedded, username, password, tls, prefix } = section;
  return {
    // crossChecks ensures that exactly one of the two is present.
    reach:
      embedded === undefined
        ? { kind: "url", url: url ?? "" }
        : { kind: "embedded", listen: embedded.listen },
    username: username ?? null,
    password: password === undefined ? null : openFirst(password, [...path, "password"], open),
    tls: tls === undefined ? null : tlsOf(tls, [...path, "tls"], openPem),
    prefix,
  };
}

function tlsOf(
  { ca, cert, key }: NonNullable<BrokerSection["tls"]>,
  path: Path,
  open: OpenPem,
): BrokerConfig["tls"] {
  return {
    ca: ca === undefined ? null : open.certificates(ca, [...path, "ca"]),
    // crossChecks ensures that both or neither are present.
    own: cert === undefined || key === undefined ? null : open.keyPair({ cert, key }, path),
  };
}
