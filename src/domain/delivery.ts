import type { CoordinationEvent } from "./event.ts";
import type { EventId, Instant } from "./units.ts";

/** One thing that a delivery says about one event; not yet believed. */
export type Notice =
  | { readonly kind: "event"; readonly event: CoordinationEvent }
  /** An explicit delete. `revision` is that of the object which came with it. Null: it had none, so the delete may be a replay. */
  | { readonly kind: "deleted"; readonly id: EventId; readonly revision: Instant | null }
  /** `GET /events/{id}` answered 404 or 410: only believed of an event that two complete lists lacked, or that a delete names. */
  | { readonly kind: "gone"; readonly id: EventId }
  | Rejected;

/** Something that could not be read as an event: quarantined with the reason, never acted on. */
export interface Rejected {
  readonly kind: "rejected";
  /** Null: not even the id could be read. */
  readonly id: EventId | null;
  /** Where in the body, e.g. `[3].intervalPeriod.duration`. */
  readonly path: string;
  /** What was found there and what would be right. */
  readonly reason: string;
  /** The offending part as JSON text, capped. */
  readonly raw: string;
}

/** Events as they arrived together: one webhook body, one list, or one fetch by id. */
export interface Delivery {
  readonly source: "webhook" | "list" | "fetch";
  readonly at: Instant;
  /** When the request that brought it was sent: what it holds is no older. The same as `at` for a webhook. */
  readonly askedAt: Instant;
  readonly notices: readonly Notice[];
  /** A list in which every entry at least had a readable id: only such a list can show absence. */
  readonly complete: boolean;
}

/** What became of a delivery, per notice; counted as DESIGN 6.3 answers a webhook. */
export interface IngestResult {
  readonly accepted: number;
  readonly repeats: number;
  readonly rejected: number;
}

/** The events that one body names twice with the same modification time and other content. */
export function contradictions(notices: readonly Notice[]): ReadonlySet<EventId> {
  const first = new Map<string, string>();
  const contradicted = new Set<EventId>();
  for (const notice of notices) {
    if (notice.kind !== "event") continue;
    const { id, revision, hash } = notice.event;
    const before = first.get(`${revision} ${id}`);
    if (before === undefined) first.set(`${revision} ${id}`, hash);
    else if (before !== hash) contradicted.add(id);
  }
  return contradicted;
}

/**
 * One body may name an event twice: the highest revision counts, and of equals the later one (DESIGN 5.2). Not across
 * a delete: what stands before it is what it deletes, and what follows makes the event anew.
 */
export function lastWords(notices: readonly Notice[]): readonly Notice[] {
  const best = new Map<EventId, number>();
  const outdone = new Set<number>();
  notices.forEach((notice, index) => {
    if (notice.kind === "deleted") best.delete(notice.id);
    if (notice.kind !== "event") return;
    const { id, revision } = notice.event;
    const before = best.get(id) ?? -1;
    const rival = notices[before];
    const isOlder = rival?.kind === "event" && revision < rival.event.revision;
    if (rival !== undefined) outdone.add(isOlder ? index : before);
    if (!isOlder) best.set(id, index);
  });
  return outdone.size === 0 ? notices : notices.filter((_, index) => !outdone.has(index));
}
