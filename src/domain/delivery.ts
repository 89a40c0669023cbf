import type { CoordinationEvent } from "./event.ts";
import type { Millis, Instant, EventId } from "./units.ts";

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

/** The event that a notice is about. Null: its id cannot be read. */
export function eventOf(notice: Exclude<Notice, Rejected>): EventId;
export function eventOf(notice: Notice): EventId | null;
export function eventOf(notice: Notice): EventId | null {
  return notice.kind === "event" ? notice.event.id : notice.id;
}

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

/** Entries of a list that are byte for byte those of the last ingested one, and were not ingested again. */
export interface UnchangedEntries {
  readonly ids: readonly EventId[];
  /** Number of them that cannot be read as events. */
  readonly rejected: number;
}

/** Notices that arrived together: one webhook body, one list, or one fetch by id. */
export interface Delivery {
  readonly source: "webhook" | "list" | "fetch";
  readonly at: Instant;
  /** Time of the request: the content is at least as new. Equal to `at` for a webhook. */
  readonly askedAt: Instant;
  readonly notices: readonly Notice[];
  /** A list in which every entry has a readable id. Only such a list can show that an event is missing. */
  readonly complete: boolean;
  /** Absent: every entry has a notice. */
  readonly unchanged?: UnchangedEntries;
  /** Number under which a stand-in stored it. Absent: it came to this process. */
  readonly stored?: number;
}

/** Counts of the notices of a delivery, as the webhook answers them. */
export interface IngestResult {
  readonly accepted: number;
  readonly repeats: number;
  readonly rejected: number;
}

/** Answer to a delivery: its counts once it is durable, or the reason why it could not be stored. */
export type IngestAnswer =
  | { readonly ok: true; readonly ingested: IngestResult }
  | { readonly ok: false; readonly reason: string };

/** No usable answer, or no request was made. */
export interface Failed {
  readonly kind: "failed";
  /** False: no request was made, or the answer concerns one id only. The partner's health is unchanged. */
  readonly asked: boolean;
  /** A sentence without secrets. */
  readonly reason: string;
  /** Status of the answer. Null: no whole answer arrived. */
  readonly status: number | null;
  /** Do not ask again before this has passed. Null: the caller's own back-off applies. */
  readonly retryAfter: Millis | null;
}

/** Result of a request for events. `skew`: our clock minus the partner's `Date`; null where it sent none. */
export type Fetched =
  | { readonly kind: "read"; readonly delivery: Delivery; readonly skew: Millis | null }
  /** Byte for byte the list that is already ingested. It still counts as a complete list when absence is judged. */
  | { readonly kind: "unchanged"; readonly at: Instant; readonly skew: Millis | null }
  | Failed;

/** A reason for a request: the list, or single events. */
export type EventHint = "list" | readonly EventId[];
