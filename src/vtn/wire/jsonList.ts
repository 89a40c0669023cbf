import type { Steps } from "../../core/steps.ts";
import { fieldsOf, type Spelling } from "./fields.ts";
import { type Decoded, decodeJson, decodeValue, NOT_JSON, unparsable } from "./json.ts";
import { COMMA, Scanner } from "./scanner.ts";

type Unparsable = Extract<Decoded, { kind: "unparsable" }>;
/** Called with each entry, in order. Null: go on; otherwise the reason why the whole list is refused. */
export type TakeEntry = (entry: unknown) => string | null;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const QUOTE = 0x22;
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
 * Passes each entry of a list to `take`: the list is the body itself, or a member of the object that it is. Accepts and
 * refuses what a JSON.parse of the whole body does, but only one entry at a time is in memory. An entry may have been
 * passed before the rest turns out to be broken. Null: the list was read to its end.
 */
export function* eachEntry<Name extends string>(
  body: Uint8Array,
  names: Spelling<Name>,
  name: NoInfer<Name>,
  take: TakeEntry,
): Steps<Exclude<Decoded, { kind: "json" }> | null> {
  const scanner = new Scanner(body, BYTE_ORDER_MARK.every((byte, at) => body[at] === byte) ? 3 : 0);
  const first = scanner.peek();
  if (first === OPENING_SQUARE) return yield* elements(body, scanner, take);
  if (first === OPENING_CURLY) return yield* wrapped(body, scanner, names, name, take);
  const decoded = decodeJson(body);
  return decoded.kind === "json" ? noList(name) : decoded;
}

const noList = (name: string): Unparsable => unparsable(`neither an array nor {${name}: [...]}`);

const restOf = (scanner: Scanner): Unparsable | null => (scanner.peek() === undefined ? null : NOT_JSON);

/** The elements of the array whose bracket is at hand. */
function* elements(body: Uint8Array, scanner: Scanner, take: TakeEntry): Steps<Unparsable | null> {
  const broken = yield* parts(scanner, CLOSING_SQUARE, ({ from, until }) => {
    const decoded = decodeValue(body.subarray(from, until));
    if (decoded.kind === "unparsable") return decoded;
    const reason = take(decoded.value);
    return reason === null ? null : unparsable(reason);
  });
  return broken ?? restOf(scanner);
}

/** The list inside an object. Other lists in it are cut up as well: only that shows whether they are JSON. */
function* wrapped<Name extends string>(
  body: Uint8Array,
  scanner: Scanner,
  names: Spelling<Name>,
  name: NoInfer<Name>,
  take: TakeEntry,
): Steps<Unparsable | null> {
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
    // Of two members with one name the last wins.
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

/** What stands between the commas of the array or object whose bracket is at hand. */
function* parts(
  scanner: Scanner,
  closing: number,
  take: (part: Span) => Unparsable | null,
): Steps<Unparsable | null> {
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
