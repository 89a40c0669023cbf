import { createHmac } from "node:crypto";
import { webhookKey } from "../config/webhookKey.ts";
import type { Instant } from "../core/units.ts";
import type { Scheme } from "./signature.ts";

/**
 * The header fields with which the partner would prove a body, made with the first secret: for a delivery to our own
 * listener. `id` is that of the delivery.
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
      // A header field carries bytes: those of the secret in UTF-8.
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
