import type { AuditRow } from "../domain/audit.ts";
import type { AuditQuery, Store } from "../domain/store.ts";
import type { Instant } from "../domain/units.ts";

/** Rows of one read. SQLite reads without a break, and a request must not delay the chargers. */
const PAGE = 256;
/** Numbers of the record that one read without an index may scan. */
const SCANNED = 5_000;

type Record = Pick<Store, "audit" | "head">;

/** Rows on an event up to now, oldest first, page by page. */
export async function* pagesOfEvent(
  store: Record,
  event: NonNullable<AuditQuery["event"]>,
): AsyncGenerator<readonly AuditRow[]> {
  // Rows that are added meanwhile do not count: the pages come to an end.
  const before = store.head().seq + 1;
  let cursor: Pick<AuditQuery, "after" | "part"> = {};
  for (;;) {
    const rows = await store.audit({ event, before, limit: PAGE, ...cursor });
    const last = rows.at(-1);
    if (last === undefined) return;
    cursor = last.part === undefined ? { after: last.seq } : { after: last.seq, part: last.part };
    yield rows;
    await nextTurn();
  }
}

/** Rows of this kind from a moment up to now, oldest first, page by page. The kinds have no index. */
export async function* pagesSince(
  store: Record,
  kind: NonNullable<AuditQuery["kind"]>,
  since: Instant,
): AsyncGenerator<readonly AuditRow[]> {
  const last = store.head().seq;
  for (let after = await lastBefore(store, since, last); after < last; after += SCANNED) {
    const before = Math.min(after + SCANNED, last) + 1;
    const rows = await store.audit({ kind, after, before, limit: SCANNED });
    yield rows.filter(({ at }) => at >= since);
    await nextTurn();
  }
}

/** Number of a row before all of a shift. The rows are in order of time, but after a step of the clock. */
async function lastBefore(store: Record, since: Instant, head: number): Promise<number> {
  let [low, high] = [0, head];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [row] = await store.audit({ after: middle, limit: 1 });
    if (row !== undefined && row.at < since) low = row.seq;
    else high = middle;
  }
  return low;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
