/** Of a Standard Webhooks key, in bytes. */
const SHORTEST = 24;

/** The key of a Standard Webhooks secret: `whsec_` and base64, or base64 alone. Null: not canonical base64, or too short a key. */
export function webhookKey(secret: string): Buffer | null {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  // Node skips what is not base64: `whsec_!!` would be the empty key, with which everybody can sign.
  return key.toString("base64") === text && key.length >= SHORTEST ? key : null;
}

/** What stands where such a secret belongs, as the end of a sentence; null: one that can be used. */
export const webhookKeyFault = (secret: string): string | null =>
  webhookKey(secret) === null ? `which is not base64 of at least ${SHORTEST} bytes` : null;
