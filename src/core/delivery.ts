import type { CoordinationEvent } from "./control/event.ts";
import type { EventId, Instant } from "./units.ts";

/** One thing that a delivery says about one event; not yet believed. */
export type Notice =
  | { readonly kind: "event"; readonly event: CoordinationEvent }
  /** An explicit delete. `revision` is that of the object which came with it, if it had one. */
  | { readonly kind: "deleted"; readonly id: EventId; readonly revision: Instant | null }
  /** `GET /events/{id}` answered 404 or 410: only believed of an event that two complete lists lacked. */
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
  readonly notices: readonly Notice[];
  /** A list in which every entry at least had a readable id: only such a list can show absence. */
  readonly complete: boolean;
}

/** What became of a delivery, per notice; counted as DESIGN 6.3 answers a webhook. */
export interface Taken {
  readonly accepted: number;
  readonly repeats: number;
  readonly rejected: number;
}
