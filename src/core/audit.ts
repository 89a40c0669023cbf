import type { ChargerId, EventId, Instant, VehicleId } from "./units.ts";

/** Any value that JSON can carry. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

export type AuditKind =
  /** The program itself: started, stopped, state set aside, clock jumped. */
  | "daemon"
  /** An event was new, changed, withdrawn, or contradicted itself. */
  | "event"
  /** Input that could not be read. */
  | "rejected"
  /** What one charger shall do, committed before it is published. */
  | "decision"
  /** What became of a decision: sent, acknowledged, accepted, refused, failed. */
  | "outcome"
  /** A window that passed while nobody could act on it, or a vehicle that was at no charger. */
  | "missed"
  /** Something a person did. */
  | "operator"
  /** Left by pruning: carries the chain on. */
  | "checkpoint";

/** One line of the record: who, what and why in words, and the same as a value. */
export interface AuditEntry {
  readonly at: Instant;
  readonly kind: AuditKind;
  readonly charger: ChargerId | null;
  readonly vehicle: VehicleId | null;
  readonly event: EventId | null;
  /** Command id, `epoch-seq`. */
  readonly command: string | null;
  readonly words: string;
  readonly facts: Json;
}
