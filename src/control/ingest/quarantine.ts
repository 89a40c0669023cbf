import { hash } from "node:crypto";

import { auditRow, type AuditEntry, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Rejected } from "../../domain/delivery.ts";
import type { EventId, Instant } from "../../domain/units.ts";

/** Cap on remembered rejections. Larger than the longest list that is accepted, so one list never evicts itself. */
const MOST = 100_000;

/** Input that was already recorded as rejected. Each input is recorded once. */
export class Rejections {
  readonly #prints = new Set<string>();

  /** True: this input was not rejected before. */
  isNew({ id, path, reason, raw }: Rejected): boolean {
    const print = hash("sha256", JSON.stringify([id, path, reason, raw]), "base64");
    if (this.#prints.has(print)) return false;
    if (this.#prints.size >= MOST) this.#prints.clear();
    this.#prints.add(print);
    return true;
  }

  /** Stored rows are unknown after a failed commit. A second row is better than none. */
  clear(): void {
    this.#prints.clear();
  }
}

/** Rejected entries of one delivery with a row of their own. One more row sums up the rest. */
const OWN_ROWS = 20;
/** Cap on quarantined entries of one delivery. More would only evict each other. */
const MOST_KEPT = 1000;
/** Ids named in the row that stands for the rest. */
const MOST_NAMED = 50;
/** Characters kept of a quarantined entry. */
export const MOST_RAW = 4096;

/** An event that is not acted on, with the reason. `path`: the member that is the reason. */
export const setAside = (id: EventId, content: object, reason: string, path = "") =>
  ({ kind: "rejected", id, path, reason, raw: JSON.stringify(content).slice(0, MOST_RAW) }) as const;

/**
 * Stores unreadable entries for inspection and records them. The same entry in every poll is recorded once.
 */
export function quarantined(
  { rejections }: { readonly rejections: Rejections },
  rejected: readonly Rejected[],
  { at, source }: { readonly at: Instant; readonly source: string },
): readonly Change[] {
  const fresh = rejected.filter((one) => rejections.isNew(one));
  const kept = fresh
    .slice(0, MOST_KEPT)
    .map((one) => ({ kind: "quarantine", rejected: one, at, source }) as const);
  const rows = fresh.slice(0, OWN_ROWS).map(({ id, path, reason }) => {
    const message = `${id === null ? "something" : `event ${id}`} in a ${source} was set aside: ${path}: ${reason}`;
    return row(at, id, message, { path, reason, source });
  });
  const rest = fresh.slice(OWN_ROWS);
  const [first] = rest;
  if (first === undefined) return [...kept, ...rows];
  const message = `${rest.length} more in the same ${source} were set aside, the next: ${first.path}: ${first.reason}`;
  const ids = rest.flatMap(({ id }) => (id === null ? [] : [id])).slice(0, MOST_NAMED);
  return [...kept, ...rows, row(at, null, message, { count: rest.length, ids, source })];
}

const row = (at: AuditEntry["at"], event: AuditEntry["event"], message: string, details: Json): Change =>
  auditRow("rejected", at, message, { event, facts: details });
