import { Scanner } from "./scanner.ts";

/** Parsed JSON of bounded depth; nothing in it has been believed yet. */
export type Decoded =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "empty" }
  | { readonly kind: "unparsable"; readonly reason: string };

const utf8 = new TextDecoder("utf-8", { fatal: true });
/** Inside a body a byte order mark is a character like any other, and JSON does not allow it. */
const utf8Inside = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Bytes to JSON. Depth and values are counted first: V8 parses what recursion over it cannot survive (failures F63), and
 * what does not fit into memory.
 */
export function decodeJson(body: Uint8Array): Decoded {
  const scanner = new Scanner(body);
  // Stops early where no JSON goes on.
  scanner.findEnd(0, Infinity);
  if (scanner.excess !== null) return unparsable(scanner.excess);
  const text = decoded(utf8, body);
  if (text === undefined) return unparsable("not UTF-8");
  if (text.trim() === "") return { kind: "empty" };
  try {
    return { kind: "json", value: JSON.parse(text) };
  } catch {
    // V8's message quotes the body, which may carry secrets.
    return unparsable(text.trimStart().startsWith("<") ? "HTML or XML, not JSON" : NOT_JSON.reason);
  }
}

/** One value out of a body whose depth and values were counted. */
export function decodeValue(bytes: Uint8Array): Exclude<Decoded, { kind: "empty" }> {
  const text = decoded(utf8Inside, bytes);
  if (text === undefined) return unparsable("not UTF-8");
  try {
    return { kind: "json", value: JSON.parse(text) };
  } catch {
    return NOT_JSON;
  }
}

type Unparsable = Extract<Decoded, { kind: "unparsable" }>;

export const unparsable = (reason: string): Unparsable => ({ kind: "unparsable", reason });
export const NOT_JSON = unparsable("not JSON");

function decoded(decoder: TextDecoder, body: Uint8Array): string | undefined {
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}
