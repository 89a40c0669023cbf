import type { AuditEntry, Json } from "../../domain/audit.ts";
import type { Rejected } from "../../domain/delivery.ts";
import type { ControlState } from "../state.ts";
import type { Change } from "../../domain/changes.ts";
import type { Instant } from "../../domain/units.ts";

/** So many things of one delivery have a row of their own in the record; one more row stands for the rest (F12, F39). */
const OWN_ROWS = 20;
/** What the store keeps of them: more would only push each other out. */
const MOST_KEPT = 1000;
/** Ids named in the row that stands for the rest. */
const MOST_NAMED = 50;
/** Characters that are kept of what was set aside. */
export const MOST_RAW = 4096;

/** What could not be read: kept to be looked at, and on record. The same rubbish in every poll is told once. */
export function quarantined(
  depot: ControlState,
  rejected: readonly Rejected[],
  { at, source }: { readonly at: Instant; readonly source: string },
): readonly Change[] {
  const fresh = rejected.filter((one) => depot.rejections.isNew(one));
  const kept = fresh
    .slice(0, MOST_KEPT)
    .map((one) => ({ kind: "quarantine", rejected: one, at, source }) as const);
  const rows = fresh.slice(0, OWN_ROWS).map(({ id, path, reason }) => {
    const words = `${id === null ? "something" : `event ${id}`} in a ${source} was set aside: ${path}: ${reason}`;
    return row(at, id, words, { path, reason, source });
  });
  const rest = fresh.slice(OWN_ROWS);
  const [first] = rest;
  if (first === undefined) return [...kept, ...rows];
  const words = `${rest.length} more in the same ${source} were set aside, the next: ${first.path}: ${first.reason}`;
  const ids = rest.flatMap(({ id }) => (id === null ? [] : [id])).slice(0, MOST_NAMED);
  return [...kept, ...rows, row(at, null, words, { count: rest.length, ids, source })];
}

const row = (at: AuditEntry["at"], event: AuditEntry["event"], words: string, facts: Json): Change => ({
  kind: "audit",
  entry: { at, kind: "rejected", charger: null, vehicle: null, event, command: null, words, facts },
});
