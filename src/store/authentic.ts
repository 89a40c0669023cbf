import { createHmac } from "node:crypto";

/**
 * HMAC-SHA256 with the site key, hex. The label says what is authenticated, so that a code for one thing is none for
 * another: it never holds a newline, and each label is used in one place.
 */
export const authenticate = (siteKey: Uint8Array, label: string, ...parts: readonly string[]): string =>
  createHmac("sha256", siteKey)
    .update([label, ...parts].join("\n"))
    .digest("hex");
