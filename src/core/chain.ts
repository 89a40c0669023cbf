import { createHmac, hash } from "node:crypto";

/** What one row of the record adds to the hash of the row before it: SHA-256, hex, of that hash, a newline, and the row's text. */
export const chainHash = (previous: string, text: string): string => hash("sha256", `${previous}\n${text}`);

/** Shows that a head was written by the holder of the site key: without it, cutting rows off would not show. HMAC-SHA256, hex. */
export const headSeal = (siteKey: Uint8Array, seq: number, headHash: string): string =>
  createHmac("sha256", siteKey).update(`audit head\n${seq}\n${headHash}`).digest("hex");
