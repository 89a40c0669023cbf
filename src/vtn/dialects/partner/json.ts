import type { ResumableTask } from "../../../platform/cooperative.ts";
import { fieldsOf, type Spelling } from "./fields.ts";

const DEEPEST = 32;
/**
 * 16 MiB of ordinary events hold about a million values. Many more than this limit would not fit into the
 * unit's memory.
 */
const MOST_VALUES = 3_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
/** `[` and `{`, `]` and `}` differ in one bit only. */
const CURLY = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Space, tab, line feed and carriage return: all that JSON allows between values. */
const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;

/**
 * Scans JSON text and counts depth and values. Brackets and commas inside strings do not count. Safe on
 * bytes: none of these occur inside a UTF-8 sequence. JSON.parse decides later if the text is JSON.
 */
class Scanner {
  at: number;
  readonly #body: Uint8Array;
  #depth = 0;
  #values = 1;

  constructor(body: Uint8Array, from = 0, depth = 0) {
    this.#body = body;
    this.at = from;
    this.#depth = depth;
  }

  /** Reason for not parsing the text. Null: the scanned part is within the limits. */
  get excess(): string | null {
    if (this.#depth > DEEPEST) return `nested deeper than ${DEEPEST} levels`;
    return this.#values > MOST_VALUES ? `more than ${MOST_VALUES} values` : null;
  }

  get isOver(): boolean {
    return this.at >= this.#body.length;
  }

  /** The next byte that is no white space. Undefined: end of the text. */
  peek(): number | undefined {
    while (isSpace(this.#body[this.at])) this.at += 1;
    return this.#body[this.at];
  }

  /** Consumes and counts one comma or bracket. Returns the byte. */
  takeMark(): number | undefined {
    const byte = this.#body[this.at];
    this.at += 1;
    if (byte === COMMA) this.#values += 1;
    else if (byte !== undefined && (byte | CURLY) === OPENING) {
      this.#depth += 1;
      this.#values += 1;
    } else if (byte !== undefined && (byte | CURLY) === CLOSING) this.#depth -= 1;
    return byte;
  }

  /** Passes a string that starts at the current quote. Returns the position after it. */
  passString(): number {
    this.at = closingQuote(this.#body, this.at + 1) + 1;
    return this.at;
  }

  /**
   * Advances to the mark that ends a value at this depth: a comma or the closing bracket of its parent.
   * False: not among the next `most` bytes. True also when a limit is exceeded.
   */
  findEnd(depth: number, most: number): boolean {
    const body = this.#body;
    const stop = Math.min(body.length, this.at + most);
    for (; this.at < stop; this.at += 1) {
      const byte = body[this.at] ?? 0;
      if (byte === QUOTE) this.at = closingQuote(body, this.at + 1);
      else if (byte === COMMA) {
        if (this.#depth === depth) return true;
        this.#values += 1;
      } else if ((byte | CURLY) === OPENING) {
        this.#depth += 1;
        this.#values += 1;
        if (this.#depth > DEEPEST) return true;
      } else if ((byte | CURLY) === CLOSING) {
        if (this.#depth === depth) return true;
        this.#depth -= 1;
      }
      if (this.#values > MOST_VALUES) return true;
    }
    return false;
  }
}

function closingQuote(body: Uint8Array, from: number): number {
  let at = from;
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Parsed JSON of bounded depth. Its content is not validated yet. */
export type Decoded =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "empty" }
  | { readonly kind: "unparsable"; readonly reason: string };

const utf8 = new TextDecoder("utf-8", { fatal: true });
/** Inside a body a byte order mark is an ordinary character, which JSON does not allow. */
const utf8Inside = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses bytes as JSON. Depth and values are counted first: V8 parses nesting that our recursion would not
 * survive, and bodies that do not fit into memory.
 */
export function decodeJson(body: Uint8Array): Decoded {
  const scanner = new Scanner(body);
  // Stops early where the text cannot be JSON.
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

/** Parses one value from a body whose depth and values are already counted. */
function decodeValue(bytes: Uint8Array): Exclude<Decoded, { kind: "empty" }> {
  const text = decoded(utf8Inside, bytes);
  if (text === undefined) return unparsable("not UTF-8");
  try {
    return { kind: "json", value: JSON.parse(text) };
  } catch {
    return NOT_JSON;
  }
}

type Unparsable = Extract<Decoded, { kind: "unparsable" }>;

const unparsable = (reason: string): Unparsable => ({ kind: "unparsable", reason });
const NOT_JSON = unparsable("not JSON");

function decoded(decoder: TextDecoder, body: Uint8Array): string | undefined {
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}

/** Called with each entry, in order, and the position after it. Null: continue. A text: the whole list is rejected for this reason. */
export type TakeEntry = (entry: unknown, until: number) => string | null;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const COLON = 0x3a;
const OPENING_SQUARE = 0x5b;
const CLOSING_SQUARE = 0x5d;
const OPENING_CURLY = 0x7b;
const CLOSING_CURLY = 0x7d;

/** Bytes scanned in one step. */
const STRIDE = 64 * 1024;

/** Part of a body. */
interface Span {
  readonly from: number;
  readonly until: number;
}

/**
 * Passes each entry of a list to `take`. The list is the body itself, or a member of its top object. Accepts
 * and rejects the same texts as JSON.parse of the whole body, but holds one entry at a time in memory.
 * Entries may be passed before a later part turns out to be broken. Null: the list was read to its end.
 */
export function* eachEntry<Name extends string>(
  body: Uint8Array,
  names: Spelling<Name>,
  name: NoInfer<Name>,
  take: TakeEntry,
): ResumableTask<Exclude<Decoded, { kind: "json" }> | null> {
  const scanner = new Scanner(body, BYTE_ORDER_MARK.every((byte, at) => body[at] === byte) ? 3 : 0);
  const first = scanner.peek();
  if (first === OPENING_SQUARE) return yield* elements(body, scanner, take);
  if (first === OPENING_CURLY) return yield* wrapped(body, scanner, names, name, take);
  const decoded = decodeJson(body);
  return decoded.kind === "json" ? noList(name) : decoded;
}

/** Position of the first entry of a body that is an array. Null: the body is something else. */
export function listStart(body: Uint8Array): number | null {
  const scanner = new Scanner(body, BYTE_ORDER_MARK.every((byte, at) => body[at] === byte) ? 3 : 0);
  return scanner.peek() === OPENING_SQUARE ? scanner.at + 1 : null;
}

/** The entry of an array that starts at this position, and the position after it. Null: not JSON, or over a limit. */
export function entryAt(body: Uint8Array, from: number): { value: unknown; until: number } | null {
  const scanner = new Scanner(body, from, 1);
  const isWhole = scanner.findEnd(1, Infinity) && scanner.excess === null;
  const decoded = isWhole ? decodeValue(body.subarray(from, scanner.at)) : NOT_JSON;
  return decoded.kind === "json" ? { value: decoded.value, until: scanner.at } : null;
}

const noList = (name: string): Unparsable => unparsable(`neither an array nor {${name}: [...]}`);

const restOf = (scanner: Scanner): Unparsable | null => (scanner.peek() === undefined ? null : NOT_JSON);

/** Reads the elements of the array that starts at the current bracket. */
function* elements(body: Uint8Array, scanner: Scanner, take: TakeEntry): ResumableTask<Unparsable | null> {
  const broken = yield* parts(scanner, CLOSING_SQUARE, ({ from, until }) => {
    const decoded = decodeValue(body.subarray(from, until));
    if (decoded.kind === "unparsable") return decoded;
    const reason = take(decoded.value, until);
    return reason === null ? null : unparsable(reason);
  });
  return broken ?? restOf(scanner);
}

/** Reads the list inside an object. Other lists in it are split as well: only that shows if they are JSON. */
function* wrapped<Name extends string>(
  body: Uint8Array,
  scanner: Scanner,
  names: Spelling<Name>,
  name: NoInfer<Name>,
  take: TakeEntry,
): ResumableTask<Unparsable | null> {
  const lists: Span[] = [];
  /** Null counts as absent. */
  const members = new Map<string, Span | "no list" | null>();
  const broken = yield* parts(scanner, CLOSING_CURLY, ({ from, until }) => {
    const member = new Scanner(body, from);
    if (member.peek() !== QUOTE) return NOT_JSON;
    const start = member.at;
    const key = decodeValue(body.subarray(start, member.passString()));
    if (key.kind === "unparsable" || member.peek() !== COLON) return NOT_JSON;
    member.at += 1;
    const list = member.peek() === OPENING_SQUARE ? { from: member.at, until } : null;
    if (list !== null) lists.push(list);
    const value = list === null ? decodeValue(body.subarray(member.at, until)) : null;
    if (value?.kind === "unparsable") return value;
    const found = list ?? (value?.value === null ? null : "no list");
    const spelled = String(key.value);
    // The last member wins where a name occurs twice.
    if (names.has(spelled) || names.has(spelled.toLowerCase())) members.set(spelled, found);
    return null;
  });
  const wrong = broken ?? restOf(scanner);
  if (wrong !== null) return wrong;
  const chosen = fieldsOf(names, Object.fromEntries(members))?.[name];
  for (const list of lists) {
    const part = body.subarray(list.from, list.until);
    const fault = yield* elements(part, new Scanner(part), list === chosen ? take : ignore);
    if (fault !== null) return fault;
  }
  return lists.some((list) => list === chosen) ? null : noList(name);
}

const ignore: TakeEntry = () => null;

/** Passes each part between commas of the array or object that starts at the current bracket. */
function* parts(
  scanner: Scanner,
  closing: number,
  take: (part: Span) => Unparsable | null,
): ResumableTask<Unparsable | null> {
  scanner.takeMark();
  if (scanner.peek() === closing) {
    scanner.takeMark();
    return null;
  }
  for (;;) {
    const from = scanner.at;
    while (!scanner.findEnd(1, STRIDE)) {
      if (scanner.isOver) return NOT_JSON;
      yield;
    }
    if (scanner.excess !== null) return unparsable(scanner.excess);
    const wrong = take({ from, until: scanner.at });
    if (wrong !== null) return wrong;
    yield;
    const mark = scanner.takeMark();
    if (mark !== COMMA) return mark === closing ? null : NOT_JSON;
  }
}
