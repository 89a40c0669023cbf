import type { Json } from "../../core/audit.ts";

/** Nothing a charger has to say is longer, in bytes or in characters; what is, is not looked at. */
export const LARGEST_PAYLOAD = 64 * 1024;

/** Undefined: it is not JSON. */
export function parsed(payload: string): Json | undefined {
  try {
    // What JSON.parse makes is JSON.
    return JSON.parse(payload) as Json;
  } catch {
    return undefined;
  }
}

/** As text; undefined: it is none, or too long. */
export function decoded(payload: Buffer): string | undefined {
  if (payload.length > LARGEST_PAYLOAD) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(payload);
  } catch {
    return undefined;
  }
}
