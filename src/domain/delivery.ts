import type { CoordinationEvent } from "./event.ts";
import type { EventId, Instant } from "./units.ts";

/** A statement about one event in a delivery, not yet believed. */
export type Notice =
  | { readonly kind: "event"; readonly event: CoordinationEvent }
  /**
   * An explicit delete. `revision`: of the object that came with it. Null: it had none, so the delete may be a
   * replay.
   */
  | { readonly kind: "deleted"; readonly id: EventId; readonly revision: Instant | null }
  /**
   * `GET /events/{id}` answered 404 or 410. It only counts for an event that two complete lists lacked, or that a
   * delete names.
   */
  | { readonly kind: "gone"; readonly id: EventId }
  | Rejected;

/** Input that cannot be read as an event. It is quarantined with the reason, never acted on. */
export interface Rejected {
  readonly kind: "rejected";
  /** Null: the id cannot be read either. */
  readonly id: EventId | null;
  /** Place in the body, e.g. `[3].intervalPeriod.duration`. */
  readonly path: string;
  /** Found value and expected value. */
  readonly reason: string;
  /** The rejected part as JSON text, capped. */
  readonly raw: string;
}

/** Notices that arrived together: one webhook body, one list, or one fetch by id. */
export interface Delivery {
  readonly source: "webhook" | "list" | "fetch";
  readonly at: Instant;
  /** When the request was sent: the content is at least as new. Equal to `at` for a webhook. */
  readonly askedAt: Instant;
  readonly notices: readonly Notice[];
  /** A list in which every entry has a readable id. Only such a list can show that an event is missing. */
  readonly complete: boolean;
}

/** Counts of the notices of a delivery, as the webhook answers them. */
export interface IngestResult {
  readonly accepted: number;
  readonly repeats: number;
  readonly rejected: number;
}

/** Events that one body names twice with the same modification time and different content. */
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
 * Keeps one notice per event: the highest revision, and of equal revisions the later one.
 * A delete separates: notices before it are what it deletes, and notices after it create the event again.
 */
export function latestNotices(notices: readonly Notice[]): readonly Notice[] {
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
