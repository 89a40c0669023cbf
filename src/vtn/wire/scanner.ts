const DEEPEST = 32;
/** 16 MiB of ordinary events hold about a million; parsed, so many more would not fit into the unit's memory. */
const MOST_VALUES = 3_000_000;

const QUOTE = 0x22;
export const COMMA = 0x2c;
const BACKSLASH = 0x5c;
/** `[` and `{`, `]` and `}` differ in one bit only. */
const CURLY = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Space, tab, line feed and carriage return: all that JSON allows between values. */
const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;

/**
 * Goes through JSON text from the front and counts depth and values. Brackets and commas inside strings do not count.
 * Safe on bytes: none of these occur inside a UTF-8 sequence. Whether the text is JSON at all is left to JSON.parse.
 */
export class Scanner {
  at: number;
  readonly #body: Uint8Array;
  #depth = 0;
  #values = 1;

  constructor(body: Uint8Array, from = 0) {
    this.#body = body;
    this.at = from;
  }

  /** Why the text must not be parsed. Null: what was scanned so far is within the limits. */
  get excess(): string | null {
    if (this.#depth > DEEPEST) return `nested deeper than ${DEEPEST} levels`;
    return this.#values > MOST_VALUES ? `more than ${MOST_VALUES} values` : null;
  }

  get isOver(): boolean {
    return this.at >= this.#body.length;
  }

  /** The next byte that is no white space. Undefined: there is none. */
  peek(): number | undefined {
    while (isSpace(this.#body[this.at])) this.at += 1;
    return this.#body[this.at];
  }

  /** Takes one comma or bracket, and counts it. Answers the byte. */
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

  /** Passes a string whose first quote is at hand. Answers where it ends. */
  passString(): number {
    this.at = closingQuote(this.#body, this.at + 1) + 1;
    return this.at;
  }

  /**
   * Goes on to the mark that ends a value at this depth: a comma, or the bracket that closes what holds the value.
   * False: it is not among the next `most` bytes. True also for an excess.
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
