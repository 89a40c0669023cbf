/** Parsed JSON of bounded depth; nothing in it has been believed yet. */
export type Decoded =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "empty" }
  | { readonly kind: "unparsable"; readonly reason: string };

const DEEPEST = 32;
/** 16 MiB of ordinary events hold about a million; parsed, so many more would not fit into the unit's memory. */
const MOST_VALUES = 3_000_000;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Bytes to JSON. Depth and values are counted first: V8 parses what recursion over it cannot survive (failures F63), and
 * what does not fit into memory.
 */
export function decodeJson(body: Uint8Array): Decoded {
  const excess = excessIn(body);
  if (excess !== null) return unparsable(excess);
  const text = decoded(body);
  if (text === undefined) return unparsable("not UTF-8");
  if (text.trim() === "") return { kind: "empty" };
  try {
    return { kind: "json", value: JSON.parse(text) };
  } catch {
    // V8's message quotes the body, which may carry secrets.
    return unparsable(text.trimStart().startsWith("<") ? "HTML or XML, not JSON" : "not JSON");
  }
}

const unparsable = (reason: string): Decoded => ({ kind: "unparsable", reason });

function decoded(body: Uint8Array): string | undefined {
  try {
    return utf8.decode(body);
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
/** `[` and `{`, `]` and `}` differ in one bit only. */
const CURLY = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/**
 * Why a text is not parsed; null: it may be. Brackets and commas inside strings do not count. Safe on bytes: none of
 * these occur inside a UTF-8 sequence.
 */
function excessIn(body: Uint8Array): string | null {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (byte === QUOTE) at = closingQuote(body, at + 1);
    else if (byte === COMMA) values += 1;
    else if ((byte | CURLY) === OPENING) {
      depth += 1;
      values += 1;
    } else if ((byte | CURLY) === CLOSING) depth -= 1;
    if (depth > DEEPEST) return `nested deeper than ${DEEPEST} levels`;
    if (values > MOST_VALUES) return `more than ${MOST_VALUES} values`;
  }
  return null;
}

function closingQuote(body: Uint8Array, from: number): number {
  let at = from;
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}
