import type { EventId } from "../../../domain/units.ts";
import type { ResumableTask } from "../../../platform/cooperative.ts";
import type { ListIndex } from "../dialect.ts";
import { entryAt, listStart } from "./json.ts";

/** An entry that the earlier list lacks, and where its bytes end. */
export interface ChangedEntry {
  readonly value: unknown;
  readonly until: number;
}

/** Entries of the earlier list that stand in the new one byte for byte, in a row. */
export interface SameEntries {
  /** Index in the earlier list. */
  readonly first: number;
  readonly count: number;
  /** Position in the new body minus position in the earlier one. */
  readonly shift: number;
}

/** Beyond this many changed entries, reading the whole list costs hardly more. */
const MOST_CHANGED = 100;
const COMMA = 0x2c;
const CLOSING_SQUARE = 0x5d;

/**
 * Compares a list with an earlier one, in the order of the new list. Only changed entries are parsed. Null: the list
 * has to be read as a whole, as it differs in too much, is no bare array, or is not JSON.
 */
export function* listChanges(
  body: Buffer,
  earlier: ListIndex,
): ResumableTask<readonly (ChangedEntry | SameEntries)[] | null> {
  const start = listStart(body);
  if (start === null) return null;
  const found: (ChangedEntry | SameEntries)[] = [];
  let at = start;
  let next = 0;
  /** Changed entries since the last one that is the same: as many earlier ones may have been replaced. */
  let changed = 0;
  for (let changes = 0; ;) {
    yield;
    const same = sameFrom(body, at, earlier, next, changed + 1);
    if (same === null) {
      const entry = entryAt(body, at);
      if (entry === null) return null;
      found.push(entry);
      at = entry.until;
      changes += 1;
      if (changes > MOST_CHANGED) return null;
      changed += 1;
    } else {
      found.push(same);
      next = same.first + same.count;
      at = (earlier.ends[next - 1] ?? 0) + same.shift;
      changed = 0;
    }
    if (body[at] === CLOSING_SQUARE) return isBlank(body, at + 1) ? found : null;
    if (body[at] !== COMMA) return null;
    at += 1;
  }
}

/** The longest row of earlier entries that stands at this position. It begins at `next`, or up to `most` entries later. */
function sameFrom(
  body: Buffer,
  at: number,
  earlier: ListIndex,
  next: number,
  most: number,
): SameEntries | null {
  const { ends, start } = earlier;
  for (let first = next; first <= next + most && first < ends.length; first += 1) {
    const shift = at - (first === 0 ? start : (ends[first - 1] ?? 0) + 1);
    let count = 0;
    // Rows of doubled length, then of halved length: each byte is compared about twice.
    for (let row = 1, doubles = true; row >= 1; row = doubles ? row * 2 : row >> 1) {
      const isSame = isSameRow(body, shift, earlier, first + count, row);
      if (isSame) count += row;
      else doubles = false;
    }
    if (count > 0) return { first, count, shift };
  }
  return null;
}

/** True: `count` entries from `first` on stand in the new body, and a comma or the end of the list follows. */
function isSameRow(body: Buffer, shift: number, earlier: ListIndex, first: number, count: number): boolean {
  const { ends, start } = earlier;
  if (first + count > ends.length) return false;
  const from = first === 0 ? start : (ends[first - 1] ?? 0) + 1;
  const until = ends[first + count - 1] ?? 0;
  const follows = body[until + shift];
  if (follows !== COMMA && follows !== CLOSING_SQUARE) return false;
  return earlier.body.compare(body, from + shift, until + shift, from, until) === 0;
}

const isBlank = (body: Buffer, from: number): boolean => /^[ \t\n\r]*$/.test(body.toString("latin1", from));

/** Adds up the entries of a list, so that the next one can be compared with it. */
export class ListIndexer {
  readonly #ends: number[] = [];
  readonly #ids: EventId[] = [];
  readonly #rejected: boolean[] = [];

  /** `id` null: unreadable. Such a list is never compared, as it is not complete. */
  add(until: number, id: EventId | null, isRejected: boolean): void {
    this.#ends.push(until);
    this.#rejected.push(isRejected);
    if (id !== null) this.#ids.push(id);
  }

  /** Takes over entries of the earlier list. */
  addSame({ first, count, shift }: SameEntries, { ends, ids, rejected }: ListIndex): void {
    for (let index = first; index < first + count; index += 1)
      this.add((ends[index] ?? 0) + shift, ids[index] ?? null, rejected[index] ?? false);
  }

  /** Null: an id is unreadable or stands twice, and then an entry cannot be judged without the others. */
  index(body: Buffer): ListIndex | null {
    const start = listStart(body);
    const isClear = this.#ids.length === this.#ends.length && new Set(this.#ids).size === this.#ids.length;
    if (start === null || !isClear) return null;
    return { body, start, ends: this.#ends, ids: this.#ids, rejected: this.#rejected };
  }
}
