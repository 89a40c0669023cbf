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
