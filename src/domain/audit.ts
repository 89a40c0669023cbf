import { createHmac, hash } from "node:crypto";

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
  /** A charger under a command of ours, a broker or the partner fell silent, or is heard again. */
  | "silence"
  /** Prices came, or stopped coming. */
  | "prices"
  /** A report was composed, sent, or will not be. */
  | "report"
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

/** An entry as it stands in the record, with what it takes to compute its hash anew (`chainHash`). */
export interface RecordRow extends AuditEntry {
  readonly seq: number;
  readonly hash: string;
  /** Hash of the row before it. */
  readonly previous: string;
  /** What of it is hashed, byte for byte. */
  readonly text: string;
}

/** One member of the facts; null where there is none. */
export const factOf = (facts: Json, name: string): Json =>
  typeof facts === "object" && facts !== null && !Array.isArray(facts)
    ? ((facts as Readonly<Record<string, Json>>)[name] ?? null)
    : null;

export const textOf = (facts: Json, name: string): string | null => {
  const value = factOf(facts, name);
  return typeof value === "string" ? value : null;
};

export const numberOf = (facts: Json, name: string): number | null => {
  const value = factOf(facts, name);
  return typeof value === "number" ? value : null;
};

/**
 * How serious a row is. Error: a charger does not do what it was told, however often it is told. Warn: input that was
 * rejected or looks wrong, a window that was missed, a command that failed, was refused or is not followed.
 */
export function severityOf({ kind, facts }: Pick<AuditEntry, "kind" | "facts">): "info" | "warn" | "error" {
  if (factOf(facts, "alarm") === true) return "error";
  return kind === "rejected" || kind === "missed" || isOdd(facts) ? "warn" : "info";
}

const ODD_PROGRESS: ReadonlySet<Json> = new Set(["refused", "notFollowed", "failed"]);

function isOdd(facts: Json): boolean {
  const odd = factOf(facts, "odd");
  return (
    factOf(facts, "warning") !== null ||
    (Array.isArray(odd) && odd.length > 0) ||
    ODD_PROGRESS.has(factOf(facts, "progress"))
  );
}

/** What one row of the record adds to the hash of the row before it: SHA-256, hex, of that hash, a newline, and the row's text. */
export const chainHash = (previous: string, text: string): string => hash("sha256", `${previous}\n${text}`);

/** Shows that a head was written by the holder of the site key: without it, cutting rows off would not show. HMAC-SHA256, hex. */
export const headSeal = (siteKey: Uint8Array, seq: number, headHash: string): string =>
  createHmac("sha256", siteKey).update(`audit head\n${seq}\n${headHash}`).digest("hex");
