import * as z from "zod";

import { sentence, findings, pathText } from "../config/explain.ts";
import { type AuditRow, AUDIT_KINDS } from "../domain/audit.ts";
import type { AuditQuery, Store } from "../domain/store.ts";
import type { Instant } from "../domain/units.ts";
import { nextTurn } from "../platform/cooperative.ts";

const MAX_ROWS = 10_000;

export const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, { error: "a whole number, e.g. 50" })
  .transform(Number);

/** `[seq]` or `[seq, part]`. */
const place = z
  .string()
  .regex(/^\d{1,15}(\.\d{1,3})?$/, { error: "the seq of a row, e.g. 50; or seq.part, e.g. 50.16" })
  .transform((text) => text.split(".").map(Number));

export const auditQuery = z.strictObject({
  event: z
    .string()
    .transform((id) => id.normalize("NFC").toWellFormed())
    .exactOptional()
    .describe("Rows about this event only."),
  charger: z.string().exactOptional().describe("Rows about this charger only."),
  kind: z.enum(AUDIT_KINDS).exactOptional().describe("Rows of this kind only."),
  after: place.exactOptional().describe("The seq of the last row seen; seq.part if it has a member part."),
  before: place
    .exactOptional()
    .describe(
      "Rows with a smaller seq only: the next page with newest. seq.part if the last row seen has a member part.",
    ),
  limit: wholeNumber
    .prefault("1000")
    .transform((limit) => Math.min(limit, MAX_ROWS))
    .describe(`At most so many rows, and at most ${MAX_ROWS}.`),
  newest: z
    .string()
    .regex(/^(true|false|1|0)$/, { error: "true or false" })
    .prefault("false")
    .transform((text) => text === "true" || text === "1")
    .describe("true or 1: the newest first."),
});

/** Parses query parameters into a query of the record. A string is an error text. */
export function auditParameters(query: Readonly<Record<string, unknown>>): AuditQuery | string {
  const result = auditQuery.safeParse(query, { error: sentence });
  if (result.success) return auditQueryOf(result.data);
  return findings(result.error, query)
    .map(({ path, found, expected }) => `${pathText(path)}: ${found}; expected ${expected}`)
    .join("; ");
}

export const auditQueryOf = ({
  after: [after, part] = [],
  before: [before, beforePart] = [],
  ...rest
}: z.output<typeof auditQuery>): AuditQuery =>
  Object.assign(
    rest,
    after === undefined ? {} : { after },
    part === undefined ? {} : { part },
    before === undefined ? {} : { before },
    beforePart === undefined ? {} : { beforePart },
  );

/** Rows of one read. SQLite reads without a break, and a request must not delay the chargers. */
const PAGE = 256;
/** Numbers of the record that one read without an index may scan. */
const SCANNED = 5_000;

type AuditRecord = Pick<Store, "audit" | "head">;

/** Rows on an event up to now, oldest first, page by page. */
export async function* pagesOfEvent(
  store: AuditRecord,
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
  store: AuditRecord,
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
async function lastBefore(store: AuditRecord, since: Instant, head: number): Promise<number> {
  let [low, high] = [0, head];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [row] = await store.audit({ after: middle, limit: 1 });
    if (row !== undefined && row.at < since) low = row.seq;
    else high = middle;
  }
  return low;
}
